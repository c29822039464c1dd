// Copies tensors to a device through pinned memory.
#include "tare/memory/pinned_copy.h"

#include "tare/memory/backend.h"
#include "tare/memory/side_work.h"

namespace tare::memory {

at::Tensor pinned_copy(const at::Tensor& host, c10::Device device) {
  const bool pins = has_streams(device) && backend(device).traits().pins;
  return (pins ? host.pin_memory() : host)
      .to(device, host.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
}

}  // namespace tare::memory
