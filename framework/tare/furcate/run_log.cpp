// Writes furcate.log.
#include "tare/furcate/run_log.h"

#include <algorithm>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/time_text.h"
#include "tare/sweep/run_record.h"

namespace tare::furcate {

using std::chrono::duration_cast;
using std::chrono::microseconds;

namespace {

constexpr size_t kLongest = 2000;  // bytes of a line
constexpr std::string_view kFurcate = ": furcate] ", kMemTrace = ": mem_trace] ";
constexpr std::string_view kRun = "mem_trace of ";  // before the name of the run

/// Returns what stands behind the time and the module in "2026-11-22 09:30:00.000123: mem_trace]
/// ..."; unset in a line of another module.
std::optional<std::string_view> text_of(std::string_view line, std::string_view module) {
  constexpr size_t kTime = 26;
  if (line.size() <= kTime || !line.substr(kTime).starts_with(module)) return std::nullopt;
  return line.substr(kTime + module.size());
}

}  // namespace

bool NewLines::read() {
  if (!file_) {
    if (path_.empty() || !std::filesystem::exists(path_)) return false;
    file_ = std::make_unique<io::File>(path_, io::Mode::read);
  }
  std::string piece(size_t{64} << 10, '\0');
  const size_t size = file_->read(piece.data(), piece.size());
  text_.append(piece.data(), size);
  return size > 0;
}

RunLog::RunLog(std::filesystem::path file, bool mem_trace)
    : file_(std::move(file)), mem_trace_(mem_trace) {
  if (mem_trace_) read_last_lines();
}

void RunLog::read_last_lines() {
  std::string* last = nullptr;  // of the run that was named
  try {
    NewLines(file_).each([&](std::string_view line) {
      if (const auto text = text_of(line, kFurcate))
        last =
            text->starts_with(kRun) ? &last_line_[std::string(text->substr(kRun.size()))] : nullptr;
      else if (last != nullptr && text_of(line, kMemTrace))
        *last = line;
    });
  } catch (const IoError& error) {
    log::warning(error.what());
  }
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
  write(exact_time_text(std::chrono::system_clock::now()) + std::string(kFurcate) +
        printable(text, 1000) + '\n');
}

void RunLog::starts(const std::string& name, const std::filesystem::path& printed) {
  started_.insert_or_assign(name,
                            Followed{.started = Clock::now(),
                                     .printed = mem_trace_ ? catch_up(name, printed) : NewLines()});
  line(name + " starts");
}

std::vector<std::string> RunLog::new_lines(NewLines& printed) const {
  std::vector<std::string> lines;
  try {
    printed.each([&lines](std::string_view line) {
      if (text_of(line, kMemTrace)) lines.push_back(printable(line, kLongest));
    });
  } catch (const IoError& error) {
    log::warning(error.what());
    printed = NewLines();  // one warning is enough
  }
  return lines;
}

NewLines RunLog::catch_up(const std::string& name, const std::filesystem::path& printed) {
  NewLines all(printed);
  std::vector<std::string> lines = new_lines(all);
  const auto last = last_line_.find(name);
  if (last != last_line_.end())
    lines.erase(lines.begin(), std::find(lines.rbegin(), lines.rend(), last->second).base());
  copy(name, lines);
  return all;
}

void RunLog::copy(const std::string& name, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  line(std::string(kRun) + name);
  write(text);
  last_line_[name] = lines.back();
}

void RunLog::poll() {
  for (auto& [name, run] : started_) copy(name, new_lines(run.printed));
}

void RunLog::ended(const std::string& name, const std::filesystem::path& printed,
                   std::string_view how, int64_t remaining, int64_t jobs) {
  const auto found = started_.find(name);
  if (found == started_.end()) {
    if (mem_trace_) (void)catch_up(name, printed);
    line(name + " has ended, " + std::string(how) + "; it was started before this sweep continued");
    return;
  }
  copy(name, new_lines(found->second.printed));
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
