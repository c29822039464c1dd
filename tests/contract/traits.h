// The devices that the contract suites are instantiated for.
#pragma once

#include <c10/core/Device.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tare/base/error.h"
#include "tare/runtime/init.h"

namespace tare::memory {

/// Whether the cards are those of the CUDA stand-in.
inline bool is_stand_in() { return std::getenv("TARE_STAND_IN") != nullptr; }

/// Whether kernels compute: not on the CUDA stand-in without values.
inline bool kernels_compute() {
  return !is_stand_in() || std::string_view(std::getenv("TARE_STAND_IN")) != "plain";
}

struct HostTraits {
  /// Rounding of a block's size by the allocator, in bytes.
  static constexpr int64_t kRounding = 1;
  static std::string prepare() {
    init({.threads = 0, .cuda = CudaMode::off});
    return {};
  }
  static c10::Device device() { return c10::kCPU; }
};

struct CudaTraits {
  static constexpr int64_t kRounding = 512;
  static std::string prepare() {
    try {
      init({.threads = 0, .cuda = CudaMode::on});
      return {};
    } catch (const DeviceError& error) {
      const char* const only = std::getenv("TARE_ONLY_ON_CARD");
      return error.what() + (only ? std::string("; only a card can show this: ") + only : "");
    }
  }
  static c10::Device device() { return {c10::kCUDA, 0}; }
};

}  // namespace tare::memory
