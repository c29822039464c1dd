// The host as a DeviceBackend. Internal: use backend(kCPU).
#pragma once

#include <memory>

#include "tare/memory/device_backend.h"

namespace tare::memory {

/// Returns the backend of the host, on the host allocator; the caller owns it.
[[nodiscard]] std::unique_ptr<DeviceBackend> make_host_backend();

}  // namespace tare::memory
