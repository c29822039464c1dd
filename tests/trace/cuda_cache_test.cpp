// The rules of the caching allocator by examples computed by hand.
#include "tare/trace/cuda_cache.h"

#include <gtest/gtest.h>

namespace tare::plan {
namespace {

constexpr int64_t kMiB = 1024 * 1024;

class Cache : public ::testing::Test {
 protected:
  void take(int64_t block, int64_t bytes, int stream = 0) {
    EXPECT_TRUE(cache_.allocate(block, bytes, stream));
  }
  void expect(int64_t allocated, int64_t reserved) {
    EXPECT_EQ(cache_.allocated_bytes(), allocated);
    EXPECT_EQ(cache_.reserved_bytes(), reserved);
  }
  CudaCache cache_;
};

TEST_F(Cache, RoundsUpTo512) {
  take(0, 1);
  expect(512, 2 * kMiB);
  take(1, 513);
  expect(512 + 1024, 2 * kMiB);
}

TEST_F(Cache, SmallBlocksShareSegmentsOf2MiB) {
  take(0, kMiB);
  take(1, kMiB);
  expect(2 * kMiB, 2 * kMiB);
  take(2, 512);
  expect(2 * kMiB + 512, 4 * kMiB);
}

TEST_F(Cache, BlocksBelow10MiBShareSegmentsOf20MiB) {
  take(0, kMiB + 1);
  expect(kMiB + 512, 20 * kMiB);
  take(1, 10 * kMiB - 512);
  expect(11 * kMiB, 20 * kMiB);
}

TEST_F(Cache, LargerBlocksHaveASegmentRoundedTo2MiB) {
  take(0, 10 * kMiB);
  expect(10 * kMiB, 10 * kMiB);
  take(1, 11 * kMiB);  // 12 MiB; the rest of 1 MiB is not split off
  expect(10 * kMiB + 12 * kMiB, 22 * kMiB);
}

TEST_F(Cache, SmallAndLargePoolsAreApart) {
  take(0, 2 * kMiB);  // leaves 18 MiB of the large pool free
  take(1, 512);
  expect(2 * kMiB + 512, 22 * kMiB);
}

TEST_F(Cache, SplitsLargeBlocksOnlyAboveOneMiB) {
  take(0, 9 * kMiB);   // 20 MiB segment: 11 MiB left
  take(1, 10 * kMiB);  // leaves 1 MiB, which stays with the block
  expect(20 * kMiB, 20 * kMiB);
  take(2, 9 * kMiB);         // a second segment
  take(3, 10 * kMiB - 512);  // leaves 1 MiB and 512 bytes, which are split off
  expect(39 * kMiB - 512, 40 * kMiB);
}

TEST_F(Cache, TakesTheBestFit) {
  take(0, 5 * kMiB);   // 20 MiB segment: [0 | 15 free]
  take(1, 15 * kMiB);  // fills it exactly
  take(2, 14 * kMiB);  // own segment
  cache_.release(2);
  cache_.release(1);
  take(3, 14 * kMiB);  // of the free blocks of 14 and 15 MiB the one of 14
  expect(19 * kMiB, 34 * kMiB);
  take(4, 15 * kMiB);  // and the other one is still whole
  expect(34 * kMiB, 34 * kMiB);
}

TEST_F(Cache, MergesWithBothNeighbours) {
  take(0, 5 * kMiB);
  take(1, 5 * kMiB);
  take(2, 5 * kMiB);
  cache_.release(0);
  cache_.release(2);  // merges with the free tail
  cache_.release(1);  // merges with both: 20 MiB again
  take(3, 20 * kMiB);
  expect(20 * kMiB, 20 * kMiB);
}

TEST_F(Cache, NeverMergesAcrossSegments) {
  take(0, 10 * kMiB);
  take(1, 10 * kMiB);
  cache_.release(0);
  cache_.release(1);
  take(2, 20 * kMiB);
  expect(20 * kMiB, 40 * kMiB);
}

TEST_F(Cache, StreamsHaveBlocksOfTheirOwn) {
  take(0, 512, 0);
  cache_.release(0);
  take(1, 512, 1);
  expect(512, 4 * kMiB);
}

TEST_F(Cache, KeepsWhatIsFreed) {
  take(0, 30 * kMiB);
  cache_.release(0);
  cache_.release(0);  // not alive: ignored
  expect(0, 30 * kMiB);
}

TEST(CudaCache, ReturnsWholeSegmentsWhenTheCardIsFull) {
  CudaCache cache(40 * kMiB);
  ASSERT_TRUE(cache.allocate(0, 20 * kMiB));
  ASSERT_TRUE(cache.allocate(1, 12 * kMiB));
  cache.release(0);
  EXPECT_TRUE(cache.allocate(2, 24 * kMiB));  // 20 MiB cached do not suffice and are returned
  EXPECT_EQ(cache.reserved_bytes(), 36 * kMiB);
  EXPECT_EQ(cache.retries(), 1);
  EXPECT_FALSE(cache.allocate(3, 10 * kMiB));
  EXPECT_EQ(cache.allocated_bytes(), 36 * kMiB);
}

TEST(CudaCache, CannotReturnASegmentInUse) {
  CudaCache cache(20 * kMiB);
  ASSERT_TRUE(cache.allocate(0, 5 * kMiB));
  EXPECT_FALSE(cache.allocate(1, 16 * kMiB));  // 15 MiB are free, but in one segment with block 0
}

TEST(CudaPeak, IsOfThePhases) {
  const Trace trace{.events = {{.block = 0, .bytes = 30 * kMiB, .phase = 2},
                               {.block = 0, .bytes = 0, .phase = 3},
                               {.block = 1, .bytes = 600, .phase = 3}},
                    .ops = {""}};
  const CudaPeak peak = cuda_peak(trace);
  EXPECT_TRUE(peak.fits);
  EXPECT_EQ(peak.whole.allocated_bytes, 30 * kMiB);
  EXPECT_EQ(peak.whole.reserved_bytes, 32 * kMiB);
  ASSERT_EQ(peak.phases.size(), 2u);
  EXPECT_EQ(peak.phases[1].allocated_bytes, 1024);
  EXPECT_FALSE(cuda_peak(trace, 29 * kMiB).fits);
}

}  // namespace
}  // namespace tare::plan
