// Tests the contract of DeviceBackend. A device's test defines a traits type with a static
// prepare(), which returns the reason why there is no such device here (empty: there is), and a
// static device(), and instantiates the suite:
//   INSTANTIATE_TYPED_TEST_SUITE_P(Host, BackendContract, HostTraits);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "contract/traits.h"
#include "support/sanitized.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/event_log.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"

namespace tare::memory {

template <class Traits>
class BackendContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = &backend(Traits::device());
    backend_->warm();
    backend_->reclaim();
    start_ = backend_->usage();
  }
  void TearDown() override {
    if (!backend_) return;
    backend_->set_budget({});
    EXPECT_EQ(backend_->usage().allocated_bytes, start_.allocated_bytes);
    EXPECT_EQ(backend_->usage().blocks, start_.blocks);
  }

  /// Sizes are whole MiB, so that no allocator's rounding shows.
  [[nodiscard]] at::Tensor take(int64_t mebibytes) const {
    return at::empty({mebibytes << 20}, at::TensorOptions(Traits::device()).dtype(at::kByte));
  }
  void touch(int64_t mebibytes) const { static_cast<void>(take(mebibytes)); }
  [[nodiscard]] int64_t allocated() const {
    return backend_->usage().allocated_bytes - start_.allocated_bytes;
  }
  [[nodiscard]] static int64_t peak(const PeakScope& scope) {
    return scope.peak_above_start_bytes() >> 20;
  }

  DeviceBackend* backend_ = nullptr;
  Usage start_;
};

TYPED_TEST_SUITE_P(BackendContract);

TYPED_TEST_P(BackendContract, SaysWhatItIs) {
  EXPECT_EQ(this->backend_->device(), TypeParam::device());
  EXPECT_FALSE(this->backend_->name().empty());
  EXPECT_THAT(devices(), ::testing::Contains(TypeParam::device()));
}

TYPED_TEST_P(BackendContract, CountsAllocationsAndBlocks) {
  auto a = this->take(3);
  const auto b = this->take(5);
  EXPECT_EQ(this->allocated(), 8_MiB);
  EXPECT_EQ(this->backend_->usage().blocks, this->start_.blocks + 2);
  const Usage now = this->backend_->usage();
  EXPECT_GE(now.reserved_bytes, now.allocated_bytes);
  EXPECT_GE(now.active_bytes, now.allocated_bytes);
  EXPECT_LE(now.active_bytes + now.fragmented_bytes, now.reserved_bytes);
  EXPECT_EQ(now.retries, this->start_.retries) << "there is enough";
  a.reset();
  EXPECT_EQ(this->allocated(), 5_MiB);
}

TYPED_TEST_P(BackendContract, KnowsTheMemoryOfTheMachine) {
  const auto info = this->backend_->memory_info();
  EXPECT_GT(info.available_bytes, 0);
  EXPECT_GE(info.total_bytes, info.available_bytes);
}

TYPED_TEST_P(BackendContract, GivesUtilisationAsAShareOrNot) {
  const auto share = this->backend_->utilisation();
  EXPECT_GE(share.value_or(0), 0.0);
  EXPECT_LE(share.value_or(0), 1.0);
}

TYPED_TEST_P(BackendContract, MeasuresNestedPeaks) {
  const PeakScope outer(TypeParam::device());
  this->touch(8);
  const auto held = this->take(2);
  {
    const PeakScope inner(TypeParam::device());
    this->touch(3);
    EXPECT_EQ(this->peak(inner), 3);
  }
  EXPECT_EQ(this->peak(outer), 8);
  this->touch(10);
  EXPECT_EQ(this->peak(outer), 12);
  EXPECT_EQ(outer.peak_bytes(), outer.start_bytes() + 12_MiB);
}

TYPED_TEST_P(BackendContract, MeasuresOverlappingPeaks) {
  std::optional<PeakScope> first(std::in_place, TypeParam::device());
  this->touch(2);
  std::optional<PeakScope> second(std::in_place, TypeParam::device());
  this->touch(6);
  EXPECT_EQ(this->peak(*first), 6);
  first.reset();
  this->touch(4);
  EXPECT_EQ(this->peak(*second), 6);
  const PeakScope third(TypeParam::device());
  EXPECT_EQ(this->peak(third), 0);
}

TYPED_TEST_P(BackendContract, RefusesAboveTheBudget) {
  this->backend_->set_budget(this->start_.reserved_bytes + 64_MiB);
  EXPECT_EQ(this->backend_->budget(), this->start_.reserved_bytes + 64_MiB);
  std::exception_ptr refusal;
  try {
    this->touch(200);
  } catch (const c10::OutOfMemoryError&) {
    refusal = std::current_exception();
  }
  ASSERT_TRUE(refusal) << "200 MiB were granted within 64 MiB";
  const auto info = classify(refusal);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->asked_bytes, 200_MiB);
  EXPECT_EQ(this->allocated(), 0);
  EXPECT_NO_THROW(this->touch(8));
  this->backend_->set_budget({});
  EXPECT_EQ(this->backend_->budget(), std::nullopt);
  EXPECT_NO_THROW(this->touch(200));
}

TYPED_TEST_P(BackendContract, ReportsARefusalBeforeItUnwinds) {
  const auto held = this->take(8);
  const int64_t budget = this->start_.reserved_bytes + 64_MiB;
  this->backend_->set_budget(budget);
  const OutOfMemoryWatch watch({.batch = 4});
  const Phase phase(PhaseKind::forward);
  EXPECT_THROW(this->touch(200), c10::OutOfMemoryError);
  const auto report = last_out_of_memory();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->device, this->backend_->device());
  EXPECT_EQ(report->asked_bytes, 200_MiB);
  EXPECT_EQ(report->budget_bytes, budget);
  EXPECT_EQ(report->phase, "forward");
  EXPECT_EQ(report->snapshot.allocated_bytes - this->start_.allocated_bytes, 8_MiB);
  ASSERT_TRUE(report->fitting_batch);
  EXPECT_EQ(*report->fitting_batch, 1) << "about 56 of 200 MiB are left for four samples";
}

TYPED_TEST_P(BackendContract, RejectsANegativeBudget) {
  EXPECT_THROW(this->backend_->set_budget(-1), ConfigError);
}

TYPED_TEST_P(BackendContract, ReclaimsCachesAndLeavesLiveTensors) {
  const auto held = this->take(4).fill_(7);
  this->take(64).fill_(1);
  const auto back = this->backend_->reclaim();
  EXPECT_EQ(this->allocated(), 4_MiB);
  if (kernels_compute()) {
    EXPECT_EQ(held.sum().template item<int64_t>(), 7 * 4_MiB);
  }
  if (tare::testing::kSanitized) GTEST_SKIP() << "the sanitizer keeps freed blocks resident";
  EXPECT_GT(back.reserved_bytes + back.process_bytes, 0);
}

TYPED_TEST_P(BackendContract, ListsLiveBlocksByBirth) {
  const auto old = this->take(1);
  const auto mark = this->backend_->sequence();
  EXPECT_TRUE(this->backend_->live_blocks(mark).empty());
  const auto first = this->take(2);
  this->touch(3);
  const auto second = [this] {
    const Phase phase(PhaseKind::step);
    return this->take(4);
  }();
  const auto born = this->backend_->live_blocks(mark);
  ASSERT_EQ(born.size(), 2U);
  EXPECT_EQ(born[0].data, first.data_ptr());
  EXPECT_EQ(born[0].bytes, 2_MiB);
  EXPECT_EQ(born[0].sequence, mark + 1);
  EXPECT_EQ(born[1].data, second.data_ptr());
  EXPECT_EQ(phase_name(born[1].phase), "step");
  EXPECT_EQ(this->backend_->sequence(), mark + 3);
}

TYPED_TEST_P(BackendContract, RecordsAllocationsAndFrees) {
  const auto old = this->take(1);
  const EventLog log({.device = TypeParam::device(), .capacity = 16});
  auto held = this->take(2);
  {
    const Phase phase(PhaseKind::step);
    this->touch(3);
    held.reset();
  }
  const auto history = log.history();
  EXPECT_EQ(history.device, TypeParam::device());
  EXPECT_EQ(history.dropped, 0U);
  ASSERT_EQ(history.events.size(), 4U);
  EXPECT_EQ(history.events[0].bytes, 2_MiB);
  EXPECT_EQ(history.events[1].bytes, 3_MiB);
  EXPECT_EQ(history.events[1].block, history.events[2].block);
  EXPECT_EQ(history.events[3].kind, EventKind::free);
  EXPECT_EQ(history.events[3].block, history.events[0].block);
  EXPECT_EQ(phase_name(history.events[3].phase), "step");
  EXPECT_EQ(phase_name(history.events[3].allocated_in), "none");
  EXPECT_EQ(peak_of(history).bytes, bytes_at_start(history) + 5_MiB);
  EXPECT_EQ(alive_after(history, 0).size(), history.alive.size());
}

TYPED_TEST_P(BackendContract, MeasuresItsRecordsOnBlocksThatCountNowhere) {
  const auto before = this->backend_->usage();
  const PeakScope peak(TypeParam::device());
  const uint64_t sequence = this->backend_->sequence();
  const double cost = this->backend_->record_cost_ns();
  EXPECT_GE(cost, 0);
  EXPECT_LT(cost, 100'000);
  EXPECT_EQ(this->backend_->sequence(), sequence);
  EXPECT_EQ(this->backend_->usage().blocks, before.blocks);
  EXPECT_EQ(peak.peak_above_start_bytes(), 0);
}

REGISTER_TYPED_TEST_SUITE_P(BackendContract, SaysWhatItIs, CountsAllocationsAndBlocks,
                            KnowsTheMemoryOfTheMachine, GivesUtilisationAsAShareOrNot,
                            MeasuresNestedPeaks, MeasuresOverlappingPeaks, RefusesAboveTheBudget,
                            ReportsARefusalBeforeItUnwinds, RejectsANegativeBudget,
                            ReclaimsCachesAndLeavesLiveTensors, ListsLiveBlocksByBirth,
                            RecordsAllocationsAndFrees, MeasuresItsRecordsOnBlocksThatCountNowhere);

}  // namespace tare::memory
