// Peaks of scopes that nest and overlap.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tare/memory/backend.h"
#include "tare/memory/host_allocator.h"

namespace tare::memory {
namespace {

constexpr int64_t kUnit = 1 << 16;

void touch(int64_t units) { at::empty({units * kUnit}, at::kByte); }
at::Tensor take(int64_t units) { return at::empty({units * kUnit}, at::kByte); }
int64_t peak(const PeakScope& scope) { return scope.peak_above_start_bytes() / kUnit; }

TEST(PeakScope, SeesAPeakThatIsOver) {
  const PeakScope scope(c10::kCPU);
  touch(5);
  EXPECT_EQ(peak(scope), 5);
  EXPECT_EQ(scope.peak_bytes(), scope.start_bytes() + 5 * kUnit);
}

TEST(PeakScope, IgnoresThePeakBeforeIt) {
  touch(9);
  const PeakScope scope(c10::kCPU);
  EXPECT_EQ(peak(scope), 0);
  touch(2);
  EXPECT_EQ(peak(scope), 2);
}

TEST(PeakScope, StaysAtZeroWhenOnlyFreed) {
  auto held = take(4);
  const PeakScope scope(c10::kCPU);
  held.reset();
  touch(3);
  EXPECT_EQ(peak(scope), 0);
}

TEST(PeakScope, Nests) {
  const PeakScope outer(c10::kCPU);
  touch(3);
  const auto held = take(1);
  {
    const PeakScope inner(c10::kCPU);
    touch(1);
    EXPECT_EQ(peak(inner), 1);
  }
  EXPECT_EQ(peak(outer), 3);
  {
    const PeakScope inner(c10::kCPU);
    touch(7);
  }
  EXPECT_EQ(peak(outer), 8);
}

TEST(PeakScope, OverlapsWithoutNesting) {
  std::optional<PeakScope> first(std::in_place, c10::kCPU);
  touch(2);
  std::optional<PeakScope> second(std::in_place, c10::kCPU);
  touch(6);
  EXPECT_EQ(peak(*first), 6);
  first.reset();
  touch(8);
  EXPECT_EQ(peak(*second), 8);
  std::optional<PeakScope> third(std::in_place, c10::kCPU);
  touch(1);
  second.reset();
  touch(4);
  EXPECT_EQ(peak(*third), 4);
}

TEST(PeakScope, ReadingDoesNotDisturbOthers) {
  const PeakScope a(c10::kCPU);
  touch(5);
  const PeakScope b(c10::kCPU);
  EXPECT_EQ(peak(a), 5);
  touch(2);
  EXPECT_EQ(peak(a), 5);
  EXPECT_EQ(peak(b), 2);
  EXPECT_EQ(peak(b), 2);
}

TEST(PeakScope, DoesNotLowerThePeakOfTheProcess) {
  const auto before = host_allocator::counters();
  const int64_t size = before.peak_bytes - before.live_bytes + kUnit;
  at::empty({size}, at::kByte);
  { const PeakScope scope(c10::kCPU); }
  EXPECT_EQ(host_allocator::counters().peak_bytes, before.live_bytes + size);
}

}  // namespace
}  // namespace tare::memory
