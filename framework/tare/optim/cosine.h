// Half a cosine between two values. Internal.
#pragma once

#include <cmath>
#include <numbers>

namespace tare {

/// Returns the value at `progress` in [0, 1] along half a cosine that begins at `from` and ends at
/// `to`.
[[nodiscard]] inline double along_cosine(double from, double to, double progress) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace tare
