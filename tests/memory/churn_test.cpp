// Everything that watches the host allocator at once, while threads hand blocks to one another.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tare/memory/call_site.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/event_log.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/memory/snapshot.h"

namespace tare::memory {
namespace {

constexpr int kChurns = 3000;
constexpr int64_t kTooMuch = int64_t{1} << 50;

constexpr int kLine = __LINE__ + 1;
at::Tensor churned(int64_t bytes) { return at::empty({bytes}, at::kByte); }

/// Blocks on their way from the thread that made them to the one that frees them.
class Exchange {
 public:
  /// Takes a block, and gives the oldest back once there are many.
  at::Tensor swap(at::Tensor block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
    if (blocks_.size() <= 32) return {};
    auto oldest = std::move(blocks_.front());
    blocks_.pop_front();
    return oldest;
  }

 private:
  std::mutex mutex_;
  std::deque<at::Tensor> blocks_;
};

void churn(Exchange& exchange, unsigned seed) {
  const ThreadPhase data(PhaseKind::data);
  std::mt19937 random(seed);
  for (int i = 0; i < kChurns; ++i) {
    exchange.swap(churned(1 + static_cast<int64_t>(random() % 4096)));
    if (i % 500 == 0) {
      EXPECT_THROW(churned(kTooMuch), OutOfMemory);
    }
  }
}

void expect_no_negative_figure(const EventHistory& history) {
  int64_t bytes = bytes_at_start(history);
  EXPECT_GE(bytes, 0);
  for (const auto& event : history.events) {
    bytes += event.kind == EventKind::allocation ? event.bytes : -event.bytes;
    if (bytes < 0) return ADD_FAILURE() << bytes << " bytes alive";
  }
  int64_t alive = 0;
  for (const auto& block : history.alive) alive += block.bytes;
  EXPECT_EQ(bytes, alive);
}

TEST(Churn, KeepsEveryCountWhileBlocksChangeHands) {
  const int64_t before = host_allocator::counters().live_bytes;
  {
    Exchange exchange;
    for (int i = 0; i < 20; ++i) exchange.swap(churned(1000));  // of before the log
    const EventLog log({.capacity = 4000});
    const CallSites stacks;
    const OutOfMemoryWatch watch({.batch = 8});
    std::thread a(churn, std::ref(exchange), 1), b(churn, std::ref(exchange), 2);
    for (int i = 0; i < 20; ++i) {
      const CallSites nested;
      expect_no_negative_figure(log.history());
      const auto snapshot = take_snapshot(c10::kCPU, Ledger());
      int64_t held = 0;
      for (const auto& holder : snapshot.holders) held += holder.bytes;
      EXPECT_EQ(held, snapshot.allocated_bytes);
    }
    a.join();
    b.join();
    const auto history = log.history();
    expect_no_negative_figure(history);
    EXPECT_EQ(history.events.size() + history.dropped, 2U * (2 * kChurns - 6));
    const auto located = std::ranges::count_if(
        history.events, [](const MemoryEvent& event) { return event.stack != 0; });
    EXPECT_EQ(located, static_cast<int64_t>(history.events.size()));
    EXPECT_EQ(site_of(history.events.back().stack).line, kLine);
    const auto report = last_out_of_memory();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->asked_bytes, kTooMuch);
    EXPECT_EQ(report->phase, "data");
  }
  EXPECT_EQ(host_allocator::counters().live_bytes, before);
}

}  // namespace
}  // namespace tare::memory
