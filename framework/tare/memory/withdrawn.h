// The devices that have a backend and cannot be opened. Thread-safe. Internal.
#pragma once

#include <c10/core/Device.h>

namespace tare::memory {

/// Takes a device out of devices() for the life of the process; backend() still returns its
/// backend.
void withdraw(c10::Device device);

/// Whether withdraw() was called for the device.
[[nodiscard]] bool is_withdrawn(c10::Device device);

}  // namespace tare::memory
