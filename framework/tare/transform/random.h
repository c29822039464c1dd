// Random bits as a pure function of a seed and a counter: the same on every machine, compiler and
// thread.
//
// Only integer arithmetic and exact conversions are
// used; no std:: distribution, whose results differ between standard libraries.
#pragma once

#include <cstdint>
#include <vector>

#include "tare/base/mix_bits.h"

namespace tare {

/// Derives a seed from a seed and a number: (run seed, epoch), (epoch seed, sample), (sample seed,
/// transform). Different pairs give unrelated seeds.
[[nodiscard]] constexpr uint64_t derive_seed(uint64_t seed, uint64_t number) {
  return mix_bits(mix_bits(seed + 0x9e3779b97f4a7c15U) ^
                  (number * 0xd1342543de82ef95U + 0x2545f4914f6cdd1dU));
}

/// Draws by SplitMix64: value i of a stream is mix_bits(seed + (i + 1) * golden ratio). A value
/// type; one per thread.
class RandomBits {
 public:
  /// Starts the stream of a seed.
  explicit constexpr RandomBits(uint64_t seed) : state_(seed) {}
  /// Returns 64 uniform bits.
  constexpr uint64_t next() { return mix_bits(state_ += 0x9e3779b97f4a7c15U); }
  /// Returns a number uniform in [0, n), n in [1, 2^32]. The bias is below n / 2^32.
  constexpr uint64_t below(uint64_t n) { return ((next() >> 32) * n) >> 32; }
  /// Returns a number uniform in [0, 1), a multiple of 2^-24: exact in float and double.
  constexpr float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24F; }
  /// Returns a number uniform in [low, high).
  constexpr float uniform(float low, float high) { return low + (high - low) * uniform(); }

 private:
  uint64_t state_;
};

/// Returns a permutation of [0, n), n in [0, 2^32], by Fisher and Yates's shuffle.
[[nodiscard]] std::vector<int64_t> permutation(int64_t n, uint64_t seed);

}  // namespace tare
