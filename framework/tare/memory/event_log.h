// EventLog: records every allocation and free of a device while it is in scope.
#pragma once

#include <cstddef>

#include "tare/memory/device_backend.h"
#include "tare/memory/event_history.h"
#include "tare/memory/event_ring.h"

namespace tare::memory {

/// Selects the device and the number of events that an EventLog records.
struct EventLogOptions {
  c10::Device device = c10::kCPU;  ///< one that has a backend
  /// Events kept, 1 to 2^30; when more come, the oldest are dropped and counted. An event takes 40
  /// bytes: the default at most 40 MiB, enough for about 1,000 steps of a small ResNet.
  size_t capacity = size_t{1} << 20;
};

/// Records from construction until the end of the scope, the events of all threads in the order in
/// which the allocator served them. Logs may nest and overlap. The events are not tensors and count
/// in no tracked figure. While no log is open, an allocation pays one branch. Thread-safe.
///
/// CUDA: sizes are those of LiveBlock, times those of the host, which runs ahead of the device; the
/// free of a block that was allocated before the backend was first used is not recorded.
class EventLog {
 public:
  /// Throws ConfigError for a capacity of 0 or above 2^30, DeviceError where there is no such
  /// device, std::bad_alloc without memory for the log.
  explicit EventLog(const EventLogOptions& options = {});
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Returns the events so far. Other threads cannot allocate while they are copied: some
  /// milliseconds for 40 MiB.
  [[nodiscard]] EventHistory history() const;

 private:
  DeviceBackend& backend_;
  EventRing ring_;
};

/// Measures the nanoseconds that recording one event, its time stamp and its write, takes on this
/// machine now. Takes about a millisecond.
[[nodiscard]] double event_cost_ns();

}  // namespace tare::memory
