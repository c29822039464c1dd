#include "tare/furcate/fork_log.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/time_text.h"
#include "tare/sweep/run_record.h"

namespace tare {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

}  // namespace

void ForkLog::line(const std::string& text) const {
  try {
    io::File file(file_, io::Mode::append);
    file.write(exact_time_text(std::chrono::system_clock::now()) + ": furcate] " +
               printable(text, 1000) + '\n');
    file.close();
  } catch (const IoError& error) {
    log::warning(error.what());
  }
}

void ForkLog::started(const std::string& name) {
  started_[name] = Clock::now();
  line(name + " starts");
}

void ForkLog::ended(const std::string& name, std::string_view how, int64_t jobs) {
  const auto found = started_.find(name);
  if (found == started_.end()) return;
  const auto time = Clock::now() - found->second;
  started_.erase(found);
  all_ += time;
  ++ended_;
  remaining_ = std::max<int64_t>(0, remaining_ - 1);
  const auto left = all_ / ended_ / std::max<int64_t>(1, jobs) * remaining_;
  line(name + " has ended, " + std::string(how) + ", after " +
       sweep::duration_text(duration_cast<microseconds>(time)) + "; " + std::to_string(remaining_) +
       (remaining_ == 1 ? " run remains" : " runs remain") + ", estimated total time remaining " +
       sweep::duration_text(duration_cast<microseconds>(left)));
}

}  // namespace tare
