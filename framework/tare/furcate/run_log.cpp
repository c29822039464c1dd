// Writes furcate.log.
#include "tare/furcate/run_log.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/time_text.h"
#include "tare/sweep/run_record.h"

namespace tare::furcate {

using std::chrono::duration_cast;
using std::chrono::microseconds;

namespace {

constexpr size_t kLongest = 2000;  // bytes of a line

/// "2026-11-22 09:30:00.000123: mem_trace] ..."
bool is_of_mem_trace(std::string_view line) {
  constexpr std::string_view kMark = ": mem_trace] ";
  constexpr size_t kTime = 26;
  return line.size() > kTime && line.substr(kTime).starts_with(kMark);
}

}  // namespace

NewLines::NewLines(std::filesystem::path file) : path_(std::move(file)) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(path_, absent);
  if (!absent) skipped_ = size;
}

void NewLines::read() {
  std::string piece(size_t{64} << 10, '\0');
  if (!file_) {
    if (path_.empty() || !std::filesystem::exists(path_)) return;
    file_ = std::make_unique<io::File>(path_, io::Mode::read);
    while (skipped_ > 0) {
      const size_t size = file_->read(
          piece.data(), static_cast<size_t>(std::min<uint64_t>(piece.size(), skipped_)));
      if (size == 0) return;
      skipped_ -= size;
    }
  }
  while (const size_t size = file_->read(piece.data(), piece.size()))
    text_.append(piece.data(), size);
}

void RunLog::write(const std::string& lines) const {
  try {
    io::File file(file_, io::Mode::append);
    file.write(lines);
    file.close();
  } catch (const IoError& error) {
    log::warning(error.what());
  }
}

void RunLog::line(const std::string& text) const {
  write(exact_time_text(std::chrono::system_clock::now()) + ": furcate] " + printable(text, 1000) +
        '\n');
}

void RunLog::starts(const std::string& name, const std::filesystem::path& printed) {
  started_.insert_or_assign(name, Followed{.started = Clock::now(),
                                           .printed = mem_trace_ ? NewLines(printed) : NewLines()});
  line(name + " starts");
}

void RunLog::look(const std::string& name, Followed& run) const {
  std::string lines;
  try {
    run.printed.each([&lines](std::string_view line) {
      if (is_of_mem_trace(line)) lines += printable(line, kLongest) + '\n';
    });
  } catch (const IoError& error) {
    log::warning(error.what());
    run.printed = NewLines();  // one warning is enough
  }
  if (lines.empty()) return;
  line("mem_trace of " + name);
  write(lines);
}

void RunLog::look() {
  if (!mem_trace_) return;
  for (auto& [name, run] : started_) look(name, run);
}

void RunLog::ended(const std::string& name, std::string_view how, int64_t remaining, int64_t jobs) {
  const auto found = started_.find(name);
  if (found == started_.end()) return;
  look(name, found->second);
  const auto time = Clock::now() - found->second.started;
  started_.erase(found);
  all_ += time;
  ++ended_;
  const auto left = all_ / ended_ / std::max<int64_t>(1, jobs) * remaining;
  line(name + " has ended, " + std::string(how) + ", after " +
       sweep::duration_text(duration_cast<microseconds>(time)) + "; " + std::to_string(remaining) +
       (remaining == 1 ? " run remains" : " runs remain") + ", estimated total time remaining " +
       sweep::duration_text(duration_cast<microseconds>(left)));
}

}  // namespace tare::furcate
