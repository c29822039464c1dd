// An accelerator for the tests alone: LibTorch's PrivateUse1 under the name "fake". Its memory is
// memory of the host with a count of its own, and its operators are the host's, so it is a device
// that no code of the framework knows by name.
#pragma once

#include <cstdint>

#include <string>

#include "tare/memory/device_backend.h"
#include "tare/runtime/init.h"

namespace tare::testing {

/// Registers the device "fake:0" with LibTorch and its backend with Tare, once in a process.
memory::DeviceBackend& fake_accelerator();

/// The state of its random generator, which draws nothing by itself.
memory::GeneratorState& generator_of_fake_accelerator();

/// The accelerator for the contract suites, see contract/traits.h.
struct FakeTraits {
  static constexpr int64_t kRounding = 1;
  static std::string prepare() {
    init({.threads = 0, .cuda = CudaMode::off});
    fake_accelerator();
    return {};
  }
  static c10::Device device() { return {c10::kPrivateUse1, 0}; }
};

}  // namespace tare::testing
