// Names the compute capabilities of NVIDIA's cards from which LibTorch's choices differ. Internal.
#pragma once

#include <cstdint>

#include "tare/memory/libtorch.h"

namespace tare::memory {

/// Gives the first compute capability of each generation, 10 x major + minor.
inline constexpr int64_t kAmpere = 80, kAda = 89, kHopper = 90, kBlackwell = 100;

/// Returns what LibTorch lets cuBLAS take from its allocator on a card of this compute capability,
/// without CUBLAS_WORKSPACE_CONFIG (ATen/cuda/CublasHandlePool.cpp).
[[nodiscard]] constexpr int64_t default_workspace_bytes(int64_t capability) {
  constexpr int64_t kKib = 1024;
  const bool takes_more =
      libtorch::kHopperAloneTakesMore ? capability == kHopper : capability >= kHopper;
  return takes_more ? 8 * 4096 * kKib : 2 * 4096 * kKib + 8 * 16 * kKib;
}

}  // namespace tare::memory
