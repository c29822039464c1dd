// Vectors of float32 of any width, and e^x of them. Internal. Included, directly or not, by one
// source for each instruction set, which defines TARE_LANES (numbers of a vector) and has flags of
// its own. Uses no function of another header, because a copy of one that is compiled here could be
// linked into code for every processor.
#pragma once

#include <cstdint>

namespace tare {
namespace {

constexpr int kLanes = TARE_LANES;

using Vec [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
using Ints [[gnu::vector_size(sizeof(int32_t) * kLanes)]] = int32_t;
// Is a vector in memory, which is aligned as its numbers are.
using Stored [[gnu::vector_size(sizeof(float) * kLanes), gnu::aligned(4), gnu::may_alias]] = float;

inline Vec load(const float* from) { return *reinterpret_cast<const Stored*>(from); }
inline void store(float* to, Vec value) { *reinterpret_cast<Stored*>(to) = value; }
inline Vec spread(float value) { return value - Vec{}; }
inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }
inline Vec smaller(Vec a, Vec b) { return a < b ? a : b; }

/// Loads `count` < kLanes numbers; the others are `rest`.
inline Vec load_some(const float* from, int64_t count, float rest) {
  Vec v = spread(rest);
  for (int64_t i = 0; i < count; ++i) v[i] = from[i];
  return v;
}
inline void store_some(float* to, int64_t count, Vec value) {
  for (int64_t i = 0; i < count; ++i) to[i] = value[i];
}

/// Calls work(vector) for all numbers, and stores what it returns.
template <class Work>
inline void each(float* x, int64_t count, const Work& work) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(x + i, work(load(x + i)));
  if (i < count) store_some(x + i, count - i, work(load_some(x + i, count - i, 0)));
}

/// Returns e^x to within 2 units in the last place; 2e38 above 88.3, and NaN for NaN. Cody and
/// Waite, "Software Manual for the Elementary Functions" (1980): x = n ln 2 + r, and e^r by its
/// series, whose next term is below 2^-26 of it.
inline Vec exponential(Vec x) {
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 0x1.8p23F;  // added and subtracted, it rounds to a whole number
  x = smaller(spread(88.3F), larger(spread(-87.3F), x));  // NaN stays, as the second operand
  const Vec n = (x * kLog2E + kRound) - kRound;
  const Vec r = (x - n * kLn2High) - n * kLn2Low;
  Vec series = spread(1.0F / 5040);
  constexpr float kTerms[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1, 1};
  for (const float term : kTerms) series = series * r + term;
  const Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
  return series * __builtin_bit_cast(Vec, power);
}

}  // namespace
}  // namespace tare
