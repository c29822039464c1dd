// Measures the cost of the always-on part of the memory tracker for a run.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tare::memory {

/// Reports what records cost in a stretch of time: their number times the time of one. A value.
struct TrackerCost {
  uint64_t records = 0;  ///< allocations and frees that were counted
  double ns_each = 0;    ///< nanoseconds that one record takes
  double seconds = 0;    ///< wall time of the stretch

  /// Returns the share of the stretch's time, 0 to 1; 0 for an empty stretch. Records of other
  /// threads count as if the stretch had waited for them.
  [[nodiscard]] double share() const;
  /// Returns "60,123 allocations at 14 ns, 0.0035 % of the time".
  [[nodiscard]] std::string str(std::string_view records_name) const;
};

/// Counts the allocations on the host, and on `device` if that is another, from construction on.
class TrackerWatch {
 public:
  /// Begins to count.
  explicit TrackerWatch(c10::Device device);

  /// Returns the cost so far. Measures DeviceBackend::record_cost_ns(), which takes some
  /// milliseconds. Not in it: what an EventLog, CallSites, SavedTensors and snapshots take while
  /// they are in use.
  [[nodiscard]] TrackerCost cost() const;

 private:
  c10::Device device_;
  uint64_t host_start_, device_start_;
  int64_t start_ns_;
};

}  // namespace tare::memory
