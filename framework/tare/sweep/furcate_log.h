// furcate.log: when the runs of a configuration of furcate's began and ended. Internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tare::sweep {

/// One line for each event, "2026-11-22 09:30:00.000123: furcate] ...". A line that cannot be
/// written is a warning.
class FurcateLog {
 public:
  explicit FurcateLog(std::filesystem::path file) : file_(std::move(file)) {}

  void started(const std::string& name);
  /// `how`: "complete", or the reason of its failure. Runs that have not been started here are none
  /// of the log's. `remaining`: runs that wait or are running; `jobs`: runs at a time.
  void ended(const std::string& name, std::string_view how, int64_t remaining, int64_t jobs);

 private:
  using Clock = std::chrono::steady_clock;

  void line(const std::string& text) const;

  std::filesystem::path file_;
  std::map<std::string, Clock::time_point> started_;  // runs that are running
  Clock::duration all_{};                             // of the runs that have ended
  int64_t ended_ = 0;
};

}  // namespace tare::sweep
