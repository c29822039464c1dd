// The log of allocations: its events, bounds and cost.
#include "tare/memory/event_log.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "memory/bytes_of.h"
#include "support/sanitized.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/machine.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

using tare::testing::bytes_of;

std::vector<uint64_t> numbers(const std::vector<LiveBlock>& blocks) {
  std::vector<uint64_t> list;
  for (const auto& block : blocks) list.push_back(block.sequence);
  return list;
}

int64_t sum(const std::vector<LiveBlock>& blocks) {
  int64_t bytes = 0;
  for (const auto& block : blocks) bytes += block.bytes;
  return bytes;
}

/// That a history agrees with itself at every event: no negative figure, no block freed that was
/// not alive.
void expect_consistent(const EventHistory& history) {
  std::map<uint64_t, int64_t> alive;
  int64_t bytes = 0, last_ns = 0, highest = 0;
  for (const auto& block : alive_after(history, 0)) alive[block.sequence] = block.bytes;
  for (const auto& [number, size] : alive) bytes += size;
  EXPECT_EQ(bytes, bytes_at_start(history));
  highest = bytes;
  for (const auto& event : history.events) {
    ASSERT_GE(event.time_ns, last_ns);
    last_ns = event.time_ns;
    ASSERT_GT(event.bytes, 0);
    if (event.kind == EventKind::allocation) {
      ASSERT_TRUE(alive.emplace(event.block, event.bytes).second);
      bytes += event.bytes;
    } else {
      const auto found = alive.find(event.block);
      ASSERT_NE(found, alive.end());
      ASSERT_EQ(found->second, event.bytes);
      alive.erase(found);
      bytes -= event.bytes;
    }
    ASSERT_GE(bytes, 0);
    highest = std::max(highest, bytes);
  }
  EXPECT_EQ(peak_of(history).bytes, highest);
  EXPECT_EQ(bytes, sum(history.alive));
  EXPECT_EQ(alive.size(), history.alive.size());
  EXPECT_GE(history.span_ns, last_ns);
}

TEST(EventLog, RecordsAllocationsAndFreesWithTheirPhases) {
  const auto before = host_allocator::counters();
  const EventLog log;
  at::Tensor kept;
  {
    const Phase phase(PhaseKind::forward);
    kept = bytes_of(100);
    bytes_of(30);
  }
  {
    const Phase phase(PhaseKind::backward);
    kept.reset();
  }
  const auto history = log.history();
  ASSERT_EQ(history.events.size(), 4U);
  const auto& first = history.events[0];
  EXPECT_EQ(first.kind, EventKind::allocation);
  EXPECT_EQ(first.bytes, 100);
  EXPECT_EQ(first.block, before.births + 1);
  EXPECT_EQ(phase_name(first.phase), "forward");
  EXPECT_EQ(history.events[1].bytes, 30);
  EXPECT_EQ(history.events[2].kind, EventKind::free);
  EXPECT_EQ(history.events[2].block, before.births + 2);
  const auto& last = history.events[3];
  EXPECT_EQ(last.kind, EventKind::free);
  EXPECT_EQ(last.bytes, 100);
  EXPECT_EQ(last.block, first.block);
  EXPECT_EQ(phase_name(last.phase), "backward");
  EXPECT_EQ(phase_name(last.allocated_in), "forward");
  EXPECT_EQ(bytes_at_start(history), before.live_bytes);
  const auto peak = peak_of(history);
  EXPECT_EQ(peak.events, 2U);
  EXPECT_EQ(peak.bytes, before.live_bytes + 130);
  EXPECT_EQ(peak.time_ns, history.events[1].time_ns);
  expect_consistent(history);
}

TEST(EventLog, RecordsNothingOfRefusedAllocations) {
  const EventLog log;
  host_allocator::fail_at(1);
  EXPECT_ANY_THROW(bytes_of(100));
  EXPECT_TRUE(log.history().events.empty());
  EXPECT_EQ(peak_of(log.history()).bytes, host_allocator::counters().live_bytes);
}

TEST(EventLog, KnowsBlocksThatWereThereBefore) {
  auto old = bytes_of(1000);
  const auto number = host_allocator::counters().births;
  const EventLog log;
  const auto young = bytes_of(10);
  old.reset();
  const auto history = log.history();
  expect_consistent(history);
  const auto at_start = numbers(alive_after(history, 0));
  EXPECT_NE(std::ranges::find(at_start, number), at_start.end());
  EXPECT_EQ(std::ranges::find(at_start, number + 1), at_start.end());
  const auto in_between = alive_after(history, 1);
  EXPECT_EQ(in_between.back().sequence, number + 1);
  EXPECT_EQ(in_between.back().data, young.data_ptr());
  EXPECT_EQ(sum(in_between), sum(history.alive) + 1000);
  EXPECT_EQ(numbers(alive_after(history, 2)), numbers(history.alive));
  EXPECT_THROW((void)alive_after(history, 3), ConfigError);
}

TEST(EventLog, SeesOnlyWhatHappensInItsScope) {
  std::optional<EventLog> outer(std::in_place);
  bytes_of(1);
  {
    const EventLog inner({.capacity = 10});
    bytes_of(2);
    EXPECT_EQ(inner.history().events.size(), 2U);
  }
  bytes_of(3);
  const EventLog overlapping;
  EXPECT_EQ(outer->history().events.size(), 6U);
  outer.reset();
  bytes_of(4);
  EXPECT_EQ(overlapping.history().events.size(), 2U);
}

TEST(EventLog, DropsTheOldestEventsAndCountsThem) {
  const EventLog log({.capacity = 5});
  std::vector<at::Tensor> kept;
  for (int64_t i = 1; i <= 7; ++i) kept.push_back(bytes_of(i));
  kept.erase(kept.begin());
  const auto history = log.history();
  EXPECT_EQ(history.dropped, 3U);
  std::vector<int64_t> sizes;
  for (const auto& event : history.events) sizes.push_back(event.bytes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 5, 6, 7, 1}));
  EXPECT_EQ(history.events.back().kind, EventKind::free);
  expect_consistent(history);
}

TEST(EventLog, RefusesACapacityOutOfRange) {
  EXPECT_THROW(EventLog({.capacity = 0}), ConfigError);
  EXPECT_THROW(EventLog({.capacity = (size_t{1} << 30) + 1}), ConfigError);
}

TEST(EventLog, RefusesADeviceThatIsNotThere) {
  EXPECT_THROW(EventLog({.device = {c10::kCUDA, 77}}), DeviceError);
}

// Two threads allocate, and free what the other made, while a third reads.
TEST(EventLog, AgreesWithItselfWhateverThreadsDo) {
  constexpr int kRounds = 5000;
  auto old = std::make_optional(bytes_of(77));
  const EventLog log({.capacity = 3000});
  std::mutex mutex;
  std::deque<at::Tensor> shared;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kRounds; ++i) {
      auto mine = bytes_of(1 + static_cast<int64_t>(random() % 4096));
      at::Tensor other;
      const std::lock_guard lock(mutex);
      shared.push_back(std::move(mine));
      if (shared.size() > 16) {
        other = std::move(shared.front());
        shared.pop_front();
      }
    }
  };
  std::thread a(work, 1), b(work, 2), dropper([&] { old.reset(); });
  for (int i = 0; i < 20; ++i) expect_consistent(log.history());
  a.join();
  b.join();
  dropper.join();
  const auto history = log.history();
  EXPECT_EQ(history.events.size(), 3000U);
  EXPECT_EQ(history.dropped + 3000, 2U * kRounds + (2U * kRounds - shared.size()) + 1);
  expect_consistent(history);
}

TEST(EventLog, StaysWithinItsRoomOverTenMillionEvents) {
  constexpr uint64_t kPairs = 5'000'000;
  constexpr size_t kCapacity = 10'000;
  auto* const allocator = c10::GetCPUAllocator();
  const EventLog log({.capacity = kCapacity});
  const auto pairs = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) allocator->raw_deallocate(allocator->raw_allocate(256));
  };
  pairs(kCapacity);
  const int64_t resident = resident_bytes();
  pairs(kPairs - kCapacity);
  if (!tare::testing::kSanitized) {
    EXPECT_LT(resident_bytes() - resident, 1_MiB);
  }
  const auto history = log.history();
  EXPECT_EQ(history.events.size(), kCapacity);
  EXPECT_EQ(history.dropped, 2 * kPairs - kCapacity);
  expect_consistent(history);
}

TEST(EventLog, KnowsWhatAnEventCosts) {
  const double cost = event_cost_ns();
  EXPECT_GT(cost, 1);
  EXPECT_LT(cost, 100'000);
}

}  // namespace
}  // namespace tare::memory
