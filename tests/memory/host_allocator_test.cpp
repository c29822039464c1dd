// Tests the counts, the budget and the refusals of the host allocator.
#include "tare/memory/host_allocator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "memory/bytes_of.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

using tare::testing::bytes_of;

class HostAllocator : public ::testing::Test {
 protected:
  void TearDown() override {
    host_allocator::set_budget({});
    host_allocator::fail_at(0);
    host_allocator::fail_all(false);
    host_allocator::set_refusal_hook(nullptr);
    EXPECT_EQ(host_allocator::counters().live_bytes, start_.live_bytes);
    EXPECT_EQ(host_allocator::counters().live_blocks, start_.live_blocks);
  }
  [[nodiscard]] int64_t live() const {
    return host_allocator::counters().live_bytes - start_.live_bytes;
  }
  [[nodiscard]] int64_t blocks() const {
    return host_allocator::counters().live_blocks - start_.live_blocks;
  }
  const HostCounters start_ = host_allocator::counters();
};

TEST_F(HostAllocator, IsInForceBeforeMain) { EXPECT_TRUE(host_allocator::installed()); }

TEST_F(HostAllocator, IsInForceBelowAnAllocatorThatPassesRequestsOn) {
  struct Other : c10::Allocator {
    explicit Other(c10::Allocator* next) : next_(next) {}
    c10::DataPtr allocate(size_t bytes) override { return next_->allocate(bytes); }
    c10::DeleterFnPtr raw_deleter() const override { return next_->raw_deleter(); }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      next_->copy_data(to, from, bytes);
    }
    c10::Allocator* next_;
  } other(c10::GetCPUAllocator());
  const uint64_t births = host_allocator::counters().births;
  c10::SetCPUAllocator(&other);
  EXPECT_TRUE(host_allocator::installed());
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator());
  EXPECT_FALSE(host_allocator::installed());
  c10::SetCPUAllocator(other.next_);
  EXPECT_TRUE(host_allocator::installed());
  EXPECT_EQ(host_allocator::counters().births, births) << "asking allocates nothing";
}

TEST_F(HostAllocator, CountsRequestedBytesAndBlocksExactly) {
  auto a = bytes_of(1000);
  const auto b = at::ones({3, 5});
  EXPECT_EQ(live(), 1000 + 60);
  EXPECT_EQ(blocks(), 2);
  const auto view = b.select(0, 1);
  EXPECT_EQ(blocks(), 2);
  a.reset();
  EXPECT_EQ(live(), 60);
}

TEST_F(HostAllocator, GivesAlignedBlocksOfEverySize) {
  for (const int64_t size : {1, 63, 64, 65, 1000, 4096, 1 << 20, 40 << 20}) {
    const auto tensor = bytes_of(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64, 0U) << size;
    std::memset(tensor.data_ptr(), 0x5a, static_cast<size_t>(size));
    EXPECT_EQ(live(), size);
  }
}

TEST_F(HostAllocator, AllocatesNothingForZeroBytes) {
  const auto births = host_allocator::counters().births;
  const auto empty = at::empty({0, 7});
  EXPECT_EQ(empty.storage().data(), nullptr);
  EXPECT_EQ(host_allocator::counters().births, births);
}

TEST_F(HostAllocator, ServesTheRawInterfaceOfLibraries) {
  auto* allocator = c10::GetCPUAllocator();
  ASSERT_NE(allocator->raw_deleter(), nullptr);
  void* const raw = allocator->raw_allocate(123);
  EXPECT_EQ(live(), 123);
  allocator->raw_deallocate(raw);
  EXPECT_EQ(live(), 0);
  EXPECT_TRUE(
      at::gelu(at::ones({8, 8})).defined());  // oneDNN takes its scratch through raw_allocate
}

TEST_F(HostAllocator, ClonesThroughCopyData) {
  auto* allocator = c10::GetCPUAllocator();
  const auto source = at::ones({4});
  const auto copy = allocator->clone(source.data_ptr(), 16);
  EXPECT_EQ(std::memcmp(copy.get(), source.data_ptr(), 16), 0);
  EXPECT_EQ(live(), 32);
}

TEST_F(HostAllocator, RefusesAboveTheBudgetAndChangesNothing) {
  const auto held = bytes_of(100);
  const auto before = host_allocator::counters();
  host_allocator::set_budget(before.live_bytes + 900);
  EXPECT_EQ(host_allocator::budget(), before.live_bytes + 900);
  try {
    bytes_of(901);
    FAIL() << "the budget was ignored";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.device(), c10::Device(c10::kCPU));
    EXPECT_EQ(error.asked_bytes(), 901);
    EXPECT_EQ(error.allocated_bytes(), before.live_bytes);
    EXPECT_EQ(error.budget_bytes(), before.live_bytes + 900);
  }
  EXPECT_EQ(host_allocator::counters().live_bytes, before.live_bytes);
  EXPECT_EQ(host_allocator::counters().births, before.births);
  EXPECT_NO_THROW(bytes_of(900));
}

TEST_F(HostAllocator, AsksTheRefusalHookForAdvice) {
  static int64_t asked_bytes = 0;
  host_allocator::set_refusal_hook([](int64_t bytes) {
    asked_bytes = bytes;
    return std::string("use fewer bytes");
  });
  const auto advice = [](int64_t bytes) -> std::string {
    try {
      bytes_of(bytes);
    } catch (const OutOfMemory& error) {
      return error.advice();
    }
    return "was not refused";
  };
  host_allocator::set_budget(host_allocator::counters().live_bytes + 10);
  EXPECT_EQ(advice(11), "use fewer bytes");
  EXPECT_EQ(asked_bytes, 11);
  host_allocator::fail_all(true);
  EXPECT_EQ(advice(12), "failed on demand by a test") << "the allocator knows better";
  EXPECT_EQ(asked_bytes, 12) << "the hook sees every refusal";
}

TEST_F(HostAllocator, AcceptsABudgetBelowWhatIsLive) {
  auto held = bytes_of(100);
  host_allocator::set_budget(0);
  EXPECT_THROW(bytes_of(1), OutOfMemory);
  held.reset();
  host_allocator::set_budget({});
  EXPECT_NO_THROW(bytes_of(1));
  EXPECT_EQ(host_allocator::budget(), std::nullopt);
}

TEST_F(HostAllocator, RejectsANegativeBudget) {
  EXPECT_THROW(host_allocator::set_budget(-1), ConfigError);
}

TEST_F(HostAllocator, ReportsWhatTheSystemRefuses) {
  const auto births = host_allocator::counters().births;
  EXPECT_THROW(bytes_of(int64_t{1} << 60), OutOfMemory);
  EXPECT_THROW(c10::GetCPUAllocator()->allocate(~size_t{0}), OutOfMemory);
  EXPECT_EQ(host_allocator::counters().births, births);
}

TEST_F(HostAllocator, FailsTheAllocationAskedForOnce) {
  host_allocator::fail_at(3);
  EXPECT_NO_THROW(bytes_of(1));
  EXPECT_NO_THROW(bytes_of(1));
  EXPECT_THROW(bytes_of(1), OutOfMemory);
  EXPECT_NO_THROW(bytes_of(1));
}

TEST_F(HostAllocator, FailsEveryAllocationUntilItIsReset) {
  host_allocator::fail_all(true);
  EXPECT_THROW(bytes_of(1), OutOfMemory);
  EXPECT_THROW(bytes_of(1), OutOfMemory);
  host_allocator::fail_all(false);
  EXPECT_NO_THROW(bytes_of(1));
}

TEST_F(HostAllocator, ListsLiveBlocksBornAfterANumber) {
  const auto old = bytes_of(10);
  const auto mark = host_allocator::counters().births;
  const auto first = bytes_of(20);
  const auto dead = std::make_optional(bytes_of(30));
  const auto second = [] {
    const Phase phase(PhaseKind::forward);
    return bytes_of(40);
  }();
  const_cast<std::optional<at::Tensor>&>(dead).reset();
  const auto born = host_allocator::live_blocks(mark);
  ASSERT_EQ(born.size(), 2U);
  EXPECT_EQ(born[0].data, first.data_ptr());
  EXPECT_EQ(born[0].bytes, 20);
  EXPECT_EQ(born[0].phase, 0U);
  EXPECT_EQ(born[1].data, second.data_ptr());
  EXPECT_EQ(born[1].sequence, mark + 3);
  EXPECT_EQ(phase_name(born[1].phase), "forward");
  EXPECT_EQ(host_allocator::live_blocks().size(),
            static_cast<size_t>(host_allocator::counters().live_blocks));
}

TEST_F(HostAllocator, KeepsTheListWholeWhateverTheOrderOfDeath) {
  const auto mark = host_allocator::counters().births;
  std::vector<at::Tensor> tensors;
  for (int64_t i = 1; i <= 7; ++i) tensors.push_back(bytes_of(i));
  for (const size_t victim : {6U, 0U, 3U}) tensors[victim].reset();
  std::vector<int64_t> sizes;
  for (const auto& block : host_allocator::live_blocks(mark)) sizes.push_back(block.bytes);
  EXPECT_THAT(sizes, ::testing::ElementsAre(2, 3, 5, 6));
}

TEST_F(HostAllocator, RemembersThePeakOfTheProcess) {
  const auto before = host_allocator::counters();
  const int64_t size = before.peak_bytes - before.live_bytes + 1_MiB;
  bytes_of(size);
  EXPECT_EQ(host_allocator::counters().peak_bytes, before.live_bytes + size);
}

// Two threads hand their blocks to each other, so that each frees what the other made.
TEST_F(HostAllocator, CountsExactlyAcrossThreads) {
  constexpr int kRounds = 20000;
  std::mutex mutex;
  std::deque<at::Tensor> shared;
  const auto work = [&](int64_t size) {
    for (int i = 0; i < kRounds; ++i) {
      auto mine = bytes_of(size);
      at::Tensor other;
      const std::lock_guard lock(mutex);
      shared.push_back(std::move(mine));
      if (shared.size() > 16) {
        other = std::move(shared.front());
        shared.pop_front();
      }
    }
  };
  const auto births = host_allocator::counters().births;
  std::thread a(work, 100), b(work, 3000);
  a.join();
  b.join();
  EXPECT_EQ(host_allocator::counters().births - births, 2U * kRounds);
  int64_t held = 0;
  for (const auto& tensor : shared) held += static_cast<int64_t>(tensor.nbytes());
  EXPECT_EQ(live(), held);
  EXPECT_EQ(blocks(), static_cast<int64_t>(shared.size()));
}

}  // namespace
}  // namespace tare::memory
