// The Gaussian error linear unit, approximated by tanh, by vector instructions. Internal.
#pragma once

#include <cstdint>

namespace tare::memory {

/// Holds x / (1 + e^(-2 u)) with u = (2 / pi)^0.5 (x + 0.044715 x^3), the approximation by tanh of
/// Hendrycks and Gimpel 2016, and its derivative, over `count` numbers.
struct GeluKernels {
  /// Writes the function of each x.
  void (*forward)(const float* x, float* result, int64_t count);
  /// Writes `gradient` times the derivative at each x.
  void (*backward)(const float* gradient, const float* x, float* result, int64_t count);
};

GeluKernels avx2_gelu();
GeluKernels avx512_gelu();

}  // namespace tare::memory
