// How a sweep stands, as values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tare::sweep {

/// A run that is on now.
struct RunNow {
  std::string name{};
  int64_t epochs = 0;                                       ///< done
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric by then
  int64_t bytes = 0;                                        ///< reserved
  double seconds = 0;                                       ///< since it started
};

struct RunCounts {
  int64_t complete = 0, pruned = 0, failed = 0, waiting = 0;
};

/// How a sweep stands.
struct SweepProgress : RunCounts {
  std::vector<RunNow> running{};  ///< oldest first
  std::string best{};             ///< name of the best complete run; empty: none
  double best_value = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace tare::sweep
