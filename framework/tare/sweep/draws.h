// Random numbers of a sampler as a pure function of a seed and counters: the same on every machine
// and compiler, and after a restart.
//
// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014); no
// std:: distribution, whose results differ between standard libraries.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tare::sweep {

/// One stream of numbers. A value; not thread-safe.
class Draws {
 public:
  /// Other counters give an unrelated stream: (trial, try).
  constexpr Draws(uint64_t seed, std::initializer_list<uint64_t> counters) : state_(mixed(seed)) {
    for (const uint64_t counter : counters) state_ = mixed(state_ ^ mixed(counter + kGolden));
  }
  /// 64 uniform bits.
  constexpr uint64_t next() { return mixed(state_ += kGolden); }
  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;
  static constexpr uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace tare::sweep
