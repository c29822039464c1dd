// GELU by tanh for vectors of any width. Internal. Included by one source for each instruction set,
// which defines TARE_LANES (vectors.h) and TARE_GELU_FUNCTION. Uses no function of another header
// than vectors.h, because a copy of one that is compiled here could be linked into code for every
// processor.
#include "tare/base/vectors.h"
#include "tare/memory/gelu_kernels.h"

namespace tare::memory {
namespace {

constexpr float kRoot = 0.797884561F, kCubic = 0.044715F;  // the first is the root of 2 / pi

/// Returns e^-2u, and 0 where that is below all normal numbers.
inline Vec decay(Vec x) {
  const Vec exponent = 2 * kRoot * (x + kCubic * x * x * x);
  return exponent > 87.3F ? Vec{} : exponential(-exponent);
}

/// Returns 1 / (1 + decay), and 0 where that is below all normal numbers.
inline Vec share(Vec decay) { return decay > 1e38F ? Vec{} : 1 / (1 + decay); }

inline Vec value(Vec x) { return x * share(decay(x)); }

inline Vec slope(Vec x) {
  const Vec e = decay(x), s = share(e);
  return s + x * (s * (e * s)) * (2 * kRoot * (1 + 3 * kCubic * x * x));
}

void forward(const float* x, float* result, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(result + i, value(load(x + i)));
  if (i == count) return;
  const int64_t rest = count - i;
  store_some(result + i, rest, value(load_some(x + i, rest, 0)));
}

void backward(const float* gradient, const float* x, float* result, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(result + i, load(gradient + i) * slope(load(x + i)));
  if (i == count) return;
  const int64_t rest = count - i;
  store_some(result + i, rest, load_some(gradient + i, rest, 0) * slope(load_some(x + i, rest, 0)));
}

}  // namespace

GeluKernels TARE_GELU_FUNCTION() { return {.forward = forward, .backward = backward}; }

}  // namespace tare::memory
