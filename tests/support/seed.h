// Seeds of tests whose moments are random.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace tare::testing {

/// A new one, printed; or TARE_TEST_SEED, to repeat a failure.
[[nodiscard]] inline uint64_t test_seed() {
  const char* given = std::getenv("TARE_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace tare::testing
