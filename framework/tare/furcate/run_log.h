// furcate.log: when the runs of a configuration of furcate's began and ended, and what held their
// memory. Internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tare/base/io.h"

namespace tare::furcate {

/// What a file has got since the last look, as whole lines. A value that moves.
class NewLines {
 public:
  NewLines() = default;
  /// From the present end of the file on, which need not be there yet.
  explicit NewLines(std::filesystem::path file);
  /// Calls `take` for each. Throws IoError.
  template <class Take>
  void each(const Take& take) {
    read();
    for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      take(std::string_view(text_).substr(0, end));
      text_.erase(0, end + 1);
    }
  }

 private:
  void read();

  std::filesystem::path path_{};
  uint64_t skipped_ = 0;              // bytes that were there before
  std::unique_ptr<io::File> file_{};  // null: not there yet
  std::string text_{};                // begun lines
};

/// One line for each event, "2026-11-22 09:30:00.000123: furcate] ...". The lines of a run's
/// mem_trace stand behind one that names the run. A line that cannot be written or read is a
/// warning.
class RunLog {
 public:
  /// `mem_trace`: whether the runs print such lines.
  RunLog(std::filesystem::path file, bool mem_trace)
      : file_(std::move(file)), mem_trace_(mem_trace) {}

  /// Before the run is started: `printed` is where its output goes.
  void starts(const std::string& name, const std::filesystem::path& printed);
  /// Takes what the runs that are running have printed of their memory.
  void look();
  /// `how`: "complete", or the reason of its failure. Runs that have not been started here are none
  /// of the log's. `remaining`: runs that wait or are running; `jobs`: runs at a time.
  void ended(const std::string& name, std::string_view how, int64_t remaining, int64_t jobs);

 private:
  using Clock = std::chrono::steady_clock;
  struct Followed {
    Clock::time_point started{};
    NewLines printed{};
  };

  void look(const std::string& name, Followed& run) const;
  void line(const std::string& text) const;
  void write(const std::string& lines) const;

  std::filesystem::path file_;
  bool mem_trace_;
  std::map<std::string, Followed> started_;  // runs that are running
  Clock::duration all_{};                    // of the runs that have ended
  int64_t ended_ = 0;
};

}  // namespace tare::furcate
