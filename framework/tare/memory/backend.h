// The backends of this process by device, and PeakScope, which measures a peak on one of them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tare/memory/device_backend.h"

namespace tare::memory {

/// Returns the backend of a device; kCPU is the host, a CUDA device without index is the first.
/// Throws DeviceError if there is no such device or its backend is not loaded (see runtime/init.h).
[[nodiscard]] DeviceBackend& backend(c10::Device device);
/// Returns every device that has a backend: the host first, then CUDA devices by index.
[[nodiscard]] std::vector<c10::Device> devices();
/// Limits the bytes of all host tensors, exactly; see DeviceBackend::set_budget.
void set_host_budget(std::optional<int64_t> bytes);
/// Registers a backend, which then lives until the process ends. Not for users: init() and device
/// libraries call it.
void add_backend(std::unique_ptr<DeviceBackend> backend);

/// Measures the peak of allocated bytes on one device from its construction on. Scopes may nest and
/// overlap, and an allocation costs the same however many are open.
class PeakScope {
 public:
  /// Begins to measure; throws DeviceError for a device without a backend.
  explicit PeakScope(c10::Device device);
  ~PeakScope();
  PeakScope(const PeakScope&) = delete;
  PeakScope& operator=(const PeakScope&) = delete;

  /// Returns the highest allocated bytes of the device in this scope, which include what was alive
  /// before.
  [[nodiscard]] int64_t peak_bytes() const;
  /// Returns the peak less what was allocated when the scope opened; never negative.
  [[nodiscard]] int64_t peak_above_start_bytes() const;
  /// Returns the allocated bytes when the scope opened.
  [[nodiscard]] int64_t start_bytes() const { return record_.start_bytes; }

 private:
  DeviceBackend& backend_;
  mutable PeakRecord record_;
};

}  // namespace tare::memory
