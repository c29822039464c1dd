// DeviceGraph: work of a device that is recorded once and then queued as a whole, without the calls
// that queue its kernels one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tare::memory {

/// Holds recorded work, and the memory that it uses between its beginning and its end. Its tensors
/// lie at the addresses that they had when it was recorded, and the numbers of the host that it was
/// given are fixed. Random numbers come from the device's default generator, in the state in which
/// the generator is when the work is queued. Not thread-safe.
class DeviceGraph {
 public:
  /// Frees the memory, which the allocator keeps in its cache. Waits for the device.
  virtual ~DeviceGraph() = default;
  /// Calls `work`, whose operators the device records and does not compute, on a stream of its own
  /// that waits for what the calling thread has queued. The allocator returns its cache before, and
  /// gives the work memory that nothing else gets while a graph of the device is there. Waits for
  /// the device. Throws what `work` throws, and LibTorch's errors where the work waits for the
  /// device or copies from memory that is not pinned; then nothing is recorded.
  virtual void record(const std::function<void()>& work) = 0;
  /// Queues the recorded work behind what the calling thread has queued.
  virtual void replay() = 0;
};

}  // namespace tare::memory
