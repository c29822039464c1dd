// The buffers of sums on a card, by examples computed by hand from LibTorch's rules.
#include "tare/trace/card_sum.h"

#include <gtest/gtest.h>

namespace tare::plan {
namespace {

constexpr memory::Multiprocessors kCard{.count = 132, .threads = 2048};

SumBuffers buffers(std::vector<SummedDim> dims, const memory::Multiprocessors& card = kCard) {
  return buffers_of(card_sum(std::move(dims)), card);
}

// The gradient of a bias: 256 columns, of which a thread takes four; 32 blocks share each.
TEST(CardSum, OfLongColumnsIsSplitOverBlocks) {
  const SumBuffers long_ones = buffers({{2048, 256, true}, {256, 1, false}});
  EXPECT_EQ(long_ones.parts, int64_t{256} * 32 * 4 * 32 * 4);
  EXPECT_EQ(long_ones.semaphores, 2 * 4);
  const SumBuffers as_three = buffers({{16, 128 * 256, true}, {128, 256, true}, {256, 1, false}});
  EXPECT_EQ(as_three.parts, long_ones.parts) << "neighbours are joined";
}

TEST(CardSum, OfFewElementsTakesNothing) {
  EXPECT_EQ(buffers({{64, 10, true}, {10, 1, false}}).parts, 0);
  EXPECT_EQ(buffers({{64, 1, true}}).parts, 0);
  EXPECT_EQ(buffers({}).parts, 0) << "a number";
}

TEST(CardSum, OfAllElementsHasOnePartForEachBlock) {
  const SumBuffers all = buffers({{int64_t{1} << 22, 1, true}});
  EXPECT_EQ(all.semaphores, 4);
  EXPECT_GT(all.parts, 0);
  EXPECT_EQ(all.parts % 4, 0);
}

TEST(CardSum, IsUnknownForACardWithoutAName) {
  EXPECT_EQ(buffers({{2048, 256, true}, {256, 1, false}}, {}).parts, 0);
}

}  // namespace
}  // namespace tare::plan
