// furcate.log: when the runs of a configuration of Furcate began and ended, and what held their
// memory. Internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tare/base/io.h"

namespace tare::furcate {

/// Reads the whole lines that were appended to a file since the last call; at first all of them. A
/// value that moves.
class NewLines {
 public:
  NewLines() = default;
  /// Reads from `file`, which need not exist yet.
  explicit NewLines(std::filesystem::path file) : path_(std::move(file)) {}
  /// Calls `take` for each. Throws IoError.
  template <class Take>
  void each(const Take& take) {
    while (read()) {
      size_t begin = 0;
      for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
        take(std::string_view(text_).substr(begin, end - begin));
        begin = end + 1;
      }
      text_.erase(0, begin);
    }
  }

 private:
  [[nodiscard]] bool read();  // a piece; false: there is no more

  std::filesystem::path path_{};
  std::unique_ptr<io::File> file_{};  // null: not there yet
  std::string text_{};                // begun lines
};

/// Writes one line for each event, "2026-11-22 09:30:00.000123: furcate] ...". The lines of a run's
/// mem_trace follow a line that names the run. Lines that a run prints while no process keeps
/// the log are taken when the run ends, or is started again. A line that cannot be written or read
/// is a warning.
class RunLog {
 public:
  /// Opens the log; `mem_trace` is whether the runs print lines of mem_trace. Looks up which of
  /// these lines the file has already.
  RunLog(std::filesystem::path file, bool mem_trace);

  /// Called before the run is started: `printed` is where its output goes.
  void starts(const std::string& name, const std::filesystem::path& printed);
  /// Takes what the runs that are running have printed of their memory.
  void poll();
  /// Logs the end of a run; `printed` is the file given to starts(), also for a run that another
  /// process started. `how` is "complete" or the reason of the failure, `remaining` the number of
  /// runs that wait or are running, `jobs` the number of runs at a time.
  void ended(const std::string& name, const std::filesystem::path& printed, std::string_view how,
             int64_t remaining, int64_t jobs);

 private:
  using Clock = std::chrono::steady_clock;
  struct Followed {
    Clock::time_point started{};
    NewLines printed{};
  };

  void read_last_lines();
  /// Returns the lines of mem_trace that are new; none after an error, which is a warning.
  [[nodiscard]] std::vector<std::string> new_lines(NewLines& printed) const;
  /// Returns what a run has printed; the lines of mem_trace up to the last one of the log are
  /// passed over.
  [[nodiscard]] NewLines catch_up(const std::string& name, const std::filesystem::path& printed);
  void copy(const std::string& name, const std::vector<std::string>& lines);
  void line(const std::string& text) const;
  void write(const std::string& lines) const;

  std::filesystem::path file_;
  bool mem_trace_;
  std::map<std::string, Followed> started_;         // runs that are running
  std::map<std::string, std::string> last_line_{};  // of mem_trace in the log, by the run's name
  Clock::duration all_{};                           // of the runs that have ended
  int64_t ended_ = 0;
};

}  // namespace tare::furcate
