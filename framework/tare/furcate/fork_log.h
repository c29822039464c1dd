// furcate.log: when the runs of a tare::Fork program began and ended. Internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tare {

/// One line for each event, "2026-11-22 09:30:00.000123: furcate] ...". A line that cannot be
/// written is a warning.
class ForkLog {
 public:
  explicit ForkLog(std::filesystem::path file) : file_(std::move(file)) {}

  void started(const std::string& name);
  /// `how`: "complete", or the reason of its failure. Runs that have not been started here are none
  /// of the log's. `jobs`: runs at a time.
  void ended(const std::string& name, std::string_view how, int64_t jobs);
  /// Runs that wait or are on, as the sweep says.
  void set_remaining(int64_t runs) { remaining_ = runs; }

 private:
  using Clock = std::chrono::steady_clock;

  void line(const std::string& text) const;

  std::filesystem::path file_;
  std::map<std::string, Clock::time_point> started_;  // runs that are on
  Clock::duration all_{};                             // of the runs that have ended
  int64_t ended_ = 0, remaining_ = 0;
};

}  // namespace tare
