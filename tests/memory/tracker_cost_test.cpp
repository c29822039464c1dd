// Tests the tracker's report of its own cost.
#include "tare/memory/tracker_cost.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "tare/memory/event_log.h"

namespace tare::memory {
namespace {

TEST(TrackerCost, IsRecordsTimesTheTimeOfOne) {
  const TrackerCost cost{.records = 1'500'000, .ns_each = 20, .seconds = 1.5};
  EXPECT_DOUBLE_EQ(cost.share(), 0.02);
  EXPECT_EQ(cost.str("allocations"), "1,500,000 allocations at 20 ns, 2 % of the time");
  EXPECT_EQ(TrackerCost{}.share(), 0);
}

TEST(TrackerCost, IsWrittenWithoutExponents) {
  const auto text = [](double ns_each, double seconds) {
    return TrackerCost{.records = 1000, .ns_each = ns_each, .seconds = seconds}.str("frees");
  };
  EXPECT_EQ(text(123.4, 1), "1,000 frees at 123 ns, 0.012 % of the time");
  EXPECT_EQ(text(1234.5, 1), "1,000 frees at 1234 ns, 0.12 % of the time");
  EXPECT_EQ(text(14.2, 10'000), "1,000 frees at 14 ns, 0.00000014 % of the time");
  EXPECT_EQ(text(9.5, 1), "1,000 frees at 9.5 ns, 0.00095 % of the time");
}

TEST(TrackerWatch, CountsTheAllocationsSinceItsStart) {
  const TrackerWatch watch(c10::kCPU);
  EXPECT_EQ(watch.cost().records, 0U);
  for (int i = 0; i < 1000; ++i) static_cast<void>(at::empty({16}));
  const TrackerCost cost = watch.cost();
  EXPECT_EQ(cost.records, 1000U) << "its own measurement is not among them";
  EXPECT_LT(cost.ns_each, 100'000);
  EXPECT_GT(cost.seconds, 0);
}

TEST(TrackerWatch, LeavesNoTraceInAnEventLog) {
  const EventLog log;
  static_cast<void>(TrackerWatch(c10::kCPU).cost());
  EXPECT_TRUE(log.history().events.empty());
}

}  // namespace
}  // namespace tare::memory
