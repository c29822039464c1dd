// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014), from which random bits are made that are the same on every machine and compiler.
#pragma once

#include <cstdint>

namespace tare {

/// Maps 64 bits to 64 bits one to one, so that every input bit changes each output bit with
/// probability close to 1/2.
[[nodiscard]] constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace tare
