// Copies of small tensors to a device that no thread waits for. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace tare::memory {

/// Returns a copy of a tensor of the host on a device. On a card it is made from pinned memory, in
/// the order of the thread's stream, so that neither the thread nor the driver's own buffer takes
/// part; LibTorch keeps the pinned memory for the next copy. The meta device has no values.
[[nodiscard]] at::Tensor pinned_copy(const at::Tensor& host, c10::Device device);

}  // namespace tare::memory
