// How a size shrinks and grows.
#include "tare/adapt/step_size.h"

#include <gtest/gtest.h>

#include <vector>

#include "tare/base/error.h"

namespace tare::adapt {
namespace {

StepSize make(int64_t limit, const Policy& policy = {}) { return {limit, policy, "test"}; }

std::vector<int64_t> shrunk_to_the_end(StepSize step) {
  std::vector<int64_t> sizes{step.get()};
  while (step.shrink(step.get())) sizes.push_back(step.get());
  return sizes;
}

constexpr int64_t kPlenty = int64_t{1} << 40;

/// Clean intervals at the present size until a larger one is due; how many it took.
int64_t cleans_until_due(StepSize& step, int64_t peak_bytes = 0) {
  int64_t count = 0;
  for (; !step.due() && count < 1000; ++count) step.clean(step.get(), peak_bytes);
  return count;
}

TEST(StepSize, HalvesDownToOne) {
  EXPECT_EQ(shrunk_to_the_end(make(100)), (std::vector<int64_t>{100, 50, 25, 12, 6, 3, 1}));
}

TEST(StepSize, KeepsToMultiplesAndNotBelowTheFloor) {
  EXPECT_EQ(shrunk_to_the_end(make(100, {.floor = 4, .multiple_of = 32})),
            (std::vector<int64_t>{100, 32, 16, 8, 4}));
  EXPECT_EQ(shrunk_to_the_end(make(96, {.multiple_of = 8, .shrink = 0.9})),
            (std::vector<int64_t>{96, 80, 72, 64, 56, 48, 40, 32, 24, 16, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(shrunk_to_the_end(make(3, {.floor = 8})), (std::vector<int64_t>{3}));
}

TEST(StepSize, OfEvenPiecesIsWhatTheyHave) {
  EXPECT_EQ(even_size(64, 63), 32);
  EXPECT_EQ(even_size(64, 32), 32);
  EXPECT_EQ(even_size(64, 31), 22);
  EXPECT_EQ(even_size(64, 100), 64);
  EXPECT_EQ(even_size(7, 1), 1);
  EXPECT_EQ(shrunk_to_the_end(make(64, {.even = true})),
            (std::vector<int64_t>{64, 32, 16, 8, 4, 2, 1}));
  EXPECT_EQ(shrunk_to_the_end(make(30, {.even = true})), (std::vector<int64_t>{30, 15, 6, 3, 1}));
  StepSize step = make(64, {.regrow_after = 1, .even = true});
  ASSERT_TRUE(step.shrink(64));
  step.clean(32, 32);
  EXPECT_FALSE(step.grow(63));  // 63 of 64 samples are two pieces of 32
  step.clean(32, 32);
  EXPECT_TRUE(step.grow(64));
}

TEST(StepSize, ShrinksFromWhatWasTried) {
  StepSize step = make(64);
  ASSERT_TRUE(step.shrink(6));  // the rest of a range
  EXPECT_EQ(step.get(), 3);
}

TEST(StepSize, GrowsIntoTheRoomByWhatCleanIntervalsTook) {
  StepSize step = make(64, {.regrow_after = 3});
  ASSERT_TRUE(step.shrink(64));
  step.clean(32, 3200);
  step.clean(16, 1700);  // a short interval takes more for each sample
  EXPECT_FALSE(step.due());
  step.clean(32, 3200);
  ASSERT_TRUE(step.due());
  EXPECT_FALSE(step.grow(3400));
  EXPECT_EQ(step.get(), 32);
  EXPECT_EQ(cleans_until_due(step), 3);  // again as long after
  EXPECT_TRUE(step.grow(5000));
  EXPECT_EQ(step.get(), 47);
  EXPECT_EQ(cleans_until_due(step, 4700), 3);
  EXPECT_TRUE(step.grow(kPlenty));
  EXPECT_EQ(step.get(), 64);
  EXPECT_FALSE(step.shrunken());
}

TEST(StepSize, GrowsOneStepAtATimeAndNeverAboveItsLimit) {
  StepSize step = make(50, {.regrow_after = 1});
  step.clean(50, 10);
  EXPECT_FALSE(step.due());
  ASSERT_TRUE(step.shrink(20));
  for (const int64_t size : {20, 40, 50}) {
    step.clean(step.get(), 10);
    ASSERT_TRUE(step.due());
    EXPECT_TRUE(step.grow(kPlenty));
    EXPECT_EQ(step.get(), size);
  }
}

TEST(StepSize, GrowsByMultiples) {
  StepSize step = make(64, {.multiple_of = 16, .regrow_after = 1});
  ASSERT_TRUE(step.shrink(32));
  step.clean(16, 160);
  EXPECT_FALSE(step.grow(310));
  step.clean(16, 160);
  EXPECT_TRUE(step.grow(330));
  EXPECT_EQ(step.get(), 32);
}

TEST(StepSize, WaitsTwiceAsLongForASizeThatFailedOnTrial) {
  StepSize step = make(64, {.regrow_after = 2});
  ASSERT_TRUE(step.shrink(64));
  for (const int64_t wait : {2, 4, 8, 16}) {
    EXPECT_EQ(cleans_until_due(step), wait);
    ASSERT_TRUE(step.grow(kPlenty));
    ASSERT_TRUE(step.shrink(64));
  }
}

TEST(StepSize, TrustsASizeThatHeldAsLongAsItWasWaitedFor) {
  StepSize step = make(64, {.regrow_after = 2});
  ASSERT_TRUE(step.shrink(64));
  EXPECT_EQ(cleans_until_due(step), 2);
  ASSERT_TRUE(step.grow(kPlenty));
  step.clean(64, 0);
  step.clean(64, 0);
  ASSERT_TRUE(step.shrink(64));
  EXPECT_EQ(cleans_until_due(step), 2);
}

TEST(StepSize, DoesNotGrowWhereThePolicySaysSo) {
  StepSize step = make(64, {.regrow_after = 0});
  ASSERT_TRUE(step.shrink(64));
  EXPECT_EQ(cleans_until_due(step), 1000);
}

TEST(StepSize, GoesOnWithASmallerSizeThatIsGiven) {
  StepSize step = make(64);
  ASSERT_TRUE(step.shrink(64, 40));
  EXPECT_EQ(step.get(), 40);
  ASSERT_TRUE(step.shrink(40, 40));  // not smaller: by the policy
  EXPECT_EQ(step.get(), 20);
  ASSERT_TRUE(step.shrink(20, 0));
  EXPECT_EQ(step.get(), 10);
}

TEST(StepSize, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(make(0), ConfigError);
  EXPECT_THROW(make(8, {.floor = 0}), ConfigError);
  EXPECT_THROW(make(8, {.multiple_of = 0}), ConfigError);
  EXPECT_THROW(make(8, {.regrow_after = -1}), ConfigError);
  for (const double shrink : {0.0, 1.0, -0.5, 2.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(make(8, {.shrink = shrink}), ConfigError) << shrink;
}

}  // namespace
}  // namespace tare::adapt
