#include "tare/sweep/furcate_log.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/time_text.h"
#include "tare/sweep/run_record.h"

namespace tare::sweep {

using std::chrono::duration_cast;
using std::chrono::microseconds;

void FurcateLog::line(const std::string& text) const {
  try {
    io::File file(file_, io::Mode::append);
    file.write(exact_time_text(std::chrono::system_clock::now()) + ": furcate] " +
               printable(text, 1000) + '\n');
    file.close();
  } catch (const IoError& error) {
    log::warning(error.what());
  }
}

void FurcateLog::started(const std::string& name) {
  started_[name] = Clock::now();
  line(name + " starts");
}

void FurcateLog::ended(const std::string& name, std::string_view how, int64_t remaining,
                       int64_t jobs) {
  const auto found = started_.find(name);
  if (found == started_.end()) return;
  const auto time = Clock::now() - found->second;
  started_.erase(found);
  all_ += time;
  ++ended_;
  const auto left = all_ / ended_ / std::max<int64_t>(1, jobs) * remaining;
  line(name + " has ended, " + std::string(how) + ", after " +
       duration_text(duration_cast<microseconds>(time)) + "; " + std::to_string(remaining) +
       (remaining == 1 ? " run remains" : " runs remain") + ", estimated total time remaining " +
       duration_text(duration_cast<microseconds>(left)));
}

}  // namespace tare::sweep
