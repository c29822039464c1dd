// SideWork: copies beside the computation of a device. Internal.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>

namespace tare::memory {

/// Whether work on a device is queued on streams.
[[nodiscard]] inline bool has_streams(c10::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

/// Runs copies beside the computation, or in its order where there are no streams. The memory that
/// they read and write belongs to the stream of the computation.
class SideWork {
 public:
  explicit SideWork(c10::Device device);

  /// Queues `copies` on a stream of its own, behind what the computation has been given so far.
  void run(const std::function<void()>& copies);
  /// Lets the computation wait for the last copies, not the calling thread.
  void join() const;
  /// Returns the event after the last copies; null where there are no streams.
  [[nodiscard]] const std::shared_ptr<c10::Event>& done() const { return done_; }

 private:
  c10::Device device_;
  std::optional<c10::Event> given_;
  std::shared_ptr<c10::Event> done_;
};

}  // namespace tare::memory
