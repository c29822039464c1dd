// The peak of events on the host.
#include "tare/trace/host_peak.h"

#include <gtest/gtest.h>

namespace tare::plan {
namespace {

constexpr uint32_t kFirst = 2, kSecond = 3;

TEST(HostPeak, FollowsLiveBytes) {
  const Trace trace{.events = {{.block = 0, .bytes = 100, .phase = kFirst},
                               {.block = 1, .bytes = 50, .phase = kFirst},
                               {.block = 0, .bytes = 0, .phase = kSecond},
                               {.block = 2, .bytes = 80, .phase = kSecond},
                               {.block = 2, .bytes = 0, .phase = kSecond}},
                    .ops = {""}};
  const HostPeak peak = host_peak(trace);
  EXPECT_EQ(peak.whole.peak_bytes, 150);
  EXPECT_EQ(peak.whole.event, 1u);
  EXPECT_EQ(peak.whole.end_bytes, 50);
  ASSERT_EQ(peak.phases.size(), 2u);
  EXPECT_EQ(peak.phases[0].peak_bytes, 150);
  EXPECT_EQ(peak.phases[0].end_bytes, 150);
  EXPECT_EQ(peak.phase(kSecond)->end_bytes, 50);
  EXPECT_EQ(peak.phase(7), nullptr);
}

TEST(HostPeak, CountsWhatAPhaseFindsAlive) {
  const Trace trace{.events = {{.block = 0, .bytes = 100, .phase = kFirst},
                               {.block = 0, .bytes = 0, .phase = kSecond},
                               {.block = 1, .bytes = 10, .phase = kSecond}},
                    .ops = {""}};
  EXPECT_EQ(host_peak(trace).phase(kSecond)->peak_bytes, 100);
}

TEST(HostPeak, SaysWhatIsAliveByPhaseOfBirth) {
  const Trace trace{.events = {{.block = 0, .bytes = 10, .phase = kFirst},
                               {.block = 1, .bytes = 20, .phase = kFirst},
                               {.block = 2, .bytes = 70, .phase = kSecond},
                               {.block = 1, .bytes = 0, .phase = kSecond}},
                    .ops = {""}};
  const auto alive = host_peak(trace).whole.alive;
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].phase, kSecond);
  EXPECT_EQ(alive[0].bytes, 70);
  EXPECT_EQ(alive[1].bytes, 30);
  EXPECT_EQ(alive[1].blocks, 2);
}

TEST(HostPeak, OfNothingIsZero) {
  const HostPeak peak = host_peak({});
  EXPECT_EQ(peak.whole.peak_bytes, 0);
  EXPECT_TRUE(peak.phases.empty());
}

}  // namespace
}  // namespace tare::plan
