// Random bits, seeds and permutations.
#include "tare/transform/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tare {
namespace {

TEST(RandomBits, AreThePublishedSplitMix64Stream) {
  // First values of the reference implementation for the seed 1234567.
  RandomBits bits(1234567);
  EXPECT_EQ(bits.next(), 6457827717110365317U);
  EXPECT_EQ(bits.next(), 3203168211198807973U);
  EXPECT_EQ(bits.next(), 9817491932198370423U);
}

TEST(RandomBits, UniformStaysInItsRangeAndIsEven) {
  RandomBits bits(7);
  constexpr int kDraws = 100'000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float value = bits.uniform();
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    sum += value;
  }
  constexpr double kFourSigma = 4 * 0.2887;  // of a uniform value, over sqrt(draws)
  EXPECT_NEAR(sum / kDraws, 0.5, kFourSigma / std::sqrt(kDraws));
}

TEST(RandomBits, BelowReachesEveryValueEvenly) {
  RandomBits bits(8);
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts.at(bits.below(10));
  for (int count : counts) EXPECT_NEAR(count, 10'000, 400);  // 4 sigma = 380
}

TEST(DeriveSeed, SeparatesSeedsAndNumbers) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (uint64_t number = 0; number < 100; ++number) seen.insert(derive_seed(seed, number));
  EXPECT_EQ(seen.size(), 10'000U);
}

TEST(Permutation, HoldsEveryIndexOnceAndDependsOnTheSeed) {
  const auto order = permutation(1000, 3);
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 1000U);
  EXPECT_EQ(*std::min_element(order.begin(), order.end()), 0);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999);
  EXPECT_EQ(order, permutation(1000, 3));
  EXPECT_NE(order, permutation(1000, 4));
  EXPECT_TRUE(permutation(0, 1).empty());
}

TEST(Permutation, FirstPlaceIsEven) {
  std::vector<int> counts(5);
  for (uint64_t seed = 0; seed < 5000; ++seed)
    ++counts.at(static_cast<size_t>(permutation(5, seed)[0]));
  for (int count : counts) EXPECT_NEAR(count, 1000, 120);  // 4 sigma = 113
}

}  // namespace
}  // namespace tare
