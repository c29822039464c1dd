// Names the compute capabilities of NVIDIA's cards from which kernels differ. Internal.
#pragma once

#include <cstdint>

namespace tare::memory {

/// Gives the first compute capability of each generation, 10 x major + minor.
inline constexpr int64_t kAmpere = 80, kAda = 89, kHopper = 90, kBlackwell = 100;

}  // namespace tare::memory
