// Random numbers of a sampler as a pure function of a seed and counters: the same on every machine
// and compiler, and after a restart.
//
// SplitMix64; no std:: distribution, whose results differ between standard libraries.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "tare/base/mix_bits.h"

namespace tare::search {

/// Draws one stream of numbers. A value; not thread-safe.
class CounterRng {
 public:
  /// Starts a stream, which is unrelated to that of other counters: (trial, try).
  constexpr CounterRng(uint64_t seed, std::initializer_list<uint64_t> counters)
      : state_(mix_bits(seed)) {
    for (const uint64_t counter : counters) state_ = mix_bits(state_ ^ mix_bits(counter + kGolden));
  }
  /// Returns 64 uniform bits.
  constexpr uint64_t next() { return mix_bits(state_ += kGolden); }
  /// Returns a number uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;
  uint64_t state_;
};

}  // namespace tare::search
