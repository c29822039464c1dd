// An accelerator for the tests alone: LibTorch's PrivateUse1 under the name "fake". Its memory is
// memory of the host with a count of its own, and its operators are the host's, so it is a device
// that no code of the framework knows by name.
#pragma once

#include <cstdint>

#include "tare/memory/device_backend.h"

namespace tare::testing {

/// Registers the device "fake:0" with LibTorch and its backend with Tare, once in a process.
memory::DeviceBackend& fake_accelerator();

/// The state of its random generator, which draws nothing by itself.
memory::GeneratorState& generator_of_fake_accelerator();

}  // namespace tare::testing
