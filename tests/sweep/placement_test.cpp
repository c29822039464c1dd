// Which run starts where.
#include "tare/sweep/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "support/environment.h"
#include "tare/base/error.h"
#include "tare/sweep/resources.h"

namespace tare::sweep {
namespace {

using launch::DeviceSlot;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Placement, TakesTheFirstThatFitsWhereItFitsBest) {
  const std::vector<DeviceSlot> devices{{"a", 100, 4}, {"b", 50, 4}};
  const auto choice = next_start(devices, {}, {{40, 0}});
  ASSERT_TRUE(choice);
  EXPECT_THAT(choice->devices, ElementsAre(1));
  EXPECT_THAT(next_start(devices, {{{1}, 20}}, {{40, 0}})->devices, ElementsAre(0));
  const auto behind = next_start(devices, {{{0}, 90}, {{1}, 20}}, {{40, 0}, {30, 0}});
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->waiting, 1U) << "the first does not fit now";
  EXPECT_FALSE(next_start(devices, {{{0}, 90}, {{1}, 20}}, {{40, 0}, {31, 0}}));
}

TEST(Placement, RunsThatAskForTooMuchHaveADeviceAlone) {
  const std::vector<DeviceSlot> devices{{"a", 100, 4}};
  EXPECT_FALSE(next_start(devices, {{{0}, 1}}, {{500, 0}}));
  const auto alone = next_start(devices, {}, {{500, 0}});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->bytes, 100);
}

TEST(Placement, NobodyOvertakesARunOutOfPatience) {
  const std::vector<DeviceSlot> devices{{"a", 100, 4}};
  EXPECT_TRUE(next_start(devices, {{{0}, 50}}, {{80, kPatience - 1}, {10, 0}}));
  EXPECT_FALSE(next_start(devices, {{{0}, 50}}, {{80, kPatience}, {10, 0}}));
}

TEST(Placement, KeepsToTheNumberOfJobs) {
  const std::vector<DeviceSlot> devices{{"a", 100, 1}};
  EXPECT_FALSE(next_start(devices, {{{0}, 1}}, {{1, 0}}));
}

TEST(Placement, GivesARunAllOfItsDevicesOrNone) {
  const std::vector<DeviceSlot> cards{{"a", 100, 1}, {"b", 60, 1}, {"c", 80, 1}};
  const auto pair = next_start(cards, {}, {{50, 0}}, 2);
  ASSERT_TRUE(pair);
  EXPECT_THAT(pair->devices, ElementsAre(1, 2)) << "where the fewest bytes are left";
  EXPECT_THAT(next_start(cards, {}, {{70, 0}}, 2)->devices, ElementsAre(0, 2));
  EXPECT_FALSE(next_start(cards, {{{1, 2}, 50}}, {{10, 0}}, 2)) << "one card is left";
  EXPECT_TRUE(next_start(cards, {{{1, 2}, 50}}, {{10, 0}}, 1));
  EXPECT_FALSE(next_start(cards, {}, {{1, 0}}, 4));
}

TEST(Placement, RunsThatAskForTooMuchHaveTheLargestDevicesAlone) {
  const std::vector<DeviceSlot> cards{{"a", 100, 4}, {"b", 60, 4}, {"c", 80, 4}};
  EXPECT_EQ(most_on_each(cards, 2), 80);
  const auto alone = next_start(cards, {}, {{500, 0}}, 2);
  ASSERT_TRUE(alone);
  EXPECT_THAT(alone->devices, ElementsAre(0, 2));
  EXPECT_EQ(alone->bytes, 80);
  EXPECT_FALSE(next_start(cards, {{{2}, 1}}, {{500, 0}}, 2)) << "not beside another one";
}

TEST(Ranks, TakeACardEachAndOneHost) {
  const std::vector<DeviceSlot> cards(3, {.name = "a", .jobs = 2, .kind = launch::SlotKind::gpu});
  EXPECT_EQ(slots_of_run(cards, {.ranks = 2}), 2U);
  EXPECT_EQ(ranks_in_slot(cards, {.ranks = 2}), 1);
  EXPECT_EQ(jobs_in(cards, {.ranks = 2}), 3);
  EXPECT_EQ(jobs_in(cards, {.jobs = 2, .ranks = 2}), 2);
  EXPECT_EQ(jobs_in(cards, {.ranks = 4}), 0);
  const std::vector<DeviceSlot> host{{.name = "host", .jobs = 5}};
  EXPECT_EQ(slots_of_run(host, {.ranks = 4}), 1U);
  EXPECT_EQ(ranks_in_slot(host, {.ranks = 4}), 4);
  EXPECT_EQ(jobs_in(host, {.ranks = 4}), 5);
}

TEST(Ranks, AreRefusedWhereThereAreTooMany) {
  const auto refusal = [](const std::vector<DeviceSlot>& slots, const Resources& resources) {
    try {
      check_ranks_fit(slots, resources);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::vector<DeviceSlot> cards(3, {.name = "a", .kind = launch::SlotKind::gpu});
  EXPECT_EQ(refusal(cards, {.ranks = 3}), "");
  EXPECT_THAT(refusal(cards, {.ranks = 4}),
              AllOf(HasSubstr("resources.ranks is more than the cards that can be used"),
                    HasSubstr("got 4; allowed: at most 3, or device: cpu")));
  const std::vector<DeviceSlot> host{{.name = "host"}};
  EXPECT_THAT(refusal(host, {.ranks = 1000}),
              AllOf(HasSubstr("resources.ranks is more than the processors that can be used"),
                    HasSubstr("got 1000; allowed: at most ")));
  EXPECT_EQ(refusal(host, {.jobs = 1, .ranks = 1000}), "") << "asked for";
  EXPECT_EQ(refusal({{.kind = launch::SlotKind::remote}}, {.ranks = 1000}), "");
}

struct Job {
  int64_t bytes = 0, time = 0;
};

/// Plays a queue of runs of `count` devices against devices of these sizes; returns its makespan.
int64_t play(const std::vector<DeviceSlot>& devices, const std::vector<Job>& jobs,
             size_t count = 1) {
  struct Run {
    Placed placed;
    int64_t ends = 0;
  };
  std::vector<Run> running;
  std::vector<std::pair<size_t, Waiting>> queue;
  for (size_t i = 0; i < jobs.size(); ++i) queue.push_back({i, {jobs[i].bytes, 0}});
  int64_t now = 0;
  while (!queue.empty() || !running.empty()) {
    std::vector<Placed> placed;
    std::vector<int64_t> used(devices.size());
    for (const auto& run : running) {
      placed.push_back(run.placed);
      for (const size_t device : run.placed.devices) used[device] += run.placed.bytes;
    }
    for (size_t d = 0; d < devices.size(); ++d) EXPECT_LE(used[d], devices[d].total_bytes);
    std::vector<Waiting> waiting;
    for (const auto& [job, entry] : queue) waiting.push_back(entry);
    if (const auto choice = next_start(devices, placed, waiting, count)) {
      for (size_t i = 0; i < choice->waiting; ++i) {
        EXPECT_LT(queue[i].second.passed_over, kPatience) << "starved";
        ++queue[i].second.passed_over;
      }
      const Job& job = jobs[queue[choice->waiting].first];
      running.push_back({{choice->devices, choice->bytes}, now + job.time});
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(choice->waiting));
      continue;
    }
    if (running.empty()) {
      ADD_FAILURE() << "nothing can start";
      return now;
    }
    now = std::ranges::min(running, {}, &Run::ends).ends;
    std::erase_if(running, [&](const Run& run) { return run.ends == now; });
  }
  return now;
}

/// No schedule is shorter: the work over all the memory, and the longest job.
int64_t bound(const std::vector<DeviceSlot>& devices, const std::vector<Job>& jobs) {
  int64_t capacity = 0, work = 0, longest = 0;
  for (const auto& device : devices) capacity += device.total_bytes;
  for (const auto& job : jobs) {
    work += job.bytes * job.time;
    longest = std::max(longest, job.time);
  }
  return std::max(longest, (work + capacity - 1) / capacity);
}

TEST(Placement, FillsDevicesToWithinAThirdOfTheBest) {
  std::mt19937 generator(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  };
  const std::vector<DeviceSlot> devices{{"a", 24, 64}, {"b", 24, 64}, {"c", 80, 64}};
  for (int round = 0; round < 200; ++round) {
    std::vector<Job> jobs;
    for (int i = 0; i < 100; ++i) jobs.push_back({draw(1, 20), draw(1, 50)});
    const auto best = static_cast<double>(bound(devices, jobs));
    ASSERT_LE(static_cast<double>(play(devices, jobs)), 1.3 * best) << "round " << round;
  }
}

TEST(Placement, StarvesNoPairAndComesToAnEnd) {
  std::mt19937 generator(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  };
  const std::vector<DeviceSlot> cards{{"a", 24, 2}, {"b", 24, 2}, {"c", 80, 2}, {"d", 48, 2}};
  for (int round = 0; round < 50; ++round) {
    std::vector<Job> jobs;
    for (int i = 0; i < 60; ++i) jobs.push_back({draw(1, 60), draw(1, 50)});
    ASSERT_GT(play(cards, jobs, 2), 0) << "round " << round;
    ASSERT_GT(play(cards, jobs, 3), 0) << "round " << round;
  }
}

TEST(ThreadsOfEach, AreAShareOfTheCoresAndAtMostWhatTheUserSet) {
  const testing::ScopedVariable unset("OMP_NUM_THREADS", std::nullopt);
  const int64_t all = threads_of_each(1);
  EXPECT_GE(all, 1);
  EXPECT_EQ(threads_of_each(10 * all), 1);
  for (const std::string set : {"1", "1,8"}) {
    const testing::ScopedVariable one("OMP_NUM_THREADS", set);
    EXPECT_EQ(threads_of_each(1), 1) << set;
  }
  for (const std::string set : {"1000000", "no number", "-3", ""}) {
    const testing::ScopedVariable other("OMP_NUM_THREADS", set);
    EXPECT_EQ(threads_of_each(1), all) << set;
  }
}

}  // namespace
}  // namespace tare::sweep
