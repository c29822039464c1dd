// Tests that an out-of-memory error names the holders of the memory.
#include "tare/memory/oom_report.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "memory/bytes_of.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

using tare::testing::bytes_of;
using ::testing::HasSubstr;

struct Owner final : Accountable {
  [[nodiscard]] std::string account_name() const override { return "owner"; }
  [[nodiscard]] Ledger ledger() const override {
    if (while_listed) while_listed();
    Ledger ledger;
    ledger.add(Category::parameters, "weight", weight);
    return ledger;
  }
  PurgeReport purge_account(const PurgeOptions&) override { return {}; }
  at::Tensor weight = bytes_of(2000);
  std::function<void()> while_listed;
};

/// Limits what is allocated from now on.
class Budget {
 public:
  explicit Budget(int64_t bytes) {
    host_allocator::set_budget(host_allocator::counters().live_bytes + bytes);
  }
  ~Budget() { host_allocator::set_budget({}); }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
};

/// The report of asking for too much, here and now.
std::shared_ptr<const OutOfMemoryReport> report_of(int64_t bytes) {
  EXPECT_THROW(bytes_of(bytes), OutOfMemory);
  return last_out_of_memory();
}

TEST(OutOfMemoryReport, SaysWhatHeldTheMemory) {
  const Owner owner;
  const Budget budget(9000);
  const OutOfMemoryWatch watch({.batch = 10, .setting = "batch"});
  EXPECT_EQ(last_out_of_memory(), nullptr);
  const Step step;
  const Phase forward(PhaseKind::forward);
  const auto activation = bytes_of(6000);
  const auto report = report_of(6001);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->asked_bytes, 6001);
  EXPECT_EQ(report->budget_bytes, host_allocator::budget());
  EXPECT_EQ(report->phase, "forward");
  EXPECT_EQ(report->snapshot.allocated_bytes, host_allocator::counters().live_bytes);
  EXPECT_EQ(report->snapshot.categories[Category::activations], 6000);
  EXPECT_EQ(report->snapshot.categories[Category::parameters], 2000);
  EXPECT_EQ(report->fitting_batch, 7) << "9000 of 12001 bytes are there for 10 samples";
  const std::string text = report->str();
  EXPECT_THAT(text,
              HasSubstr("out of memory on cpu in phase forward: asked for 5.9 KiB beside the "));
  EXPECT_THAT(text, HasSubstr(" of a budget of "));
  EXPECT_THAT(text, HasSubstr("2 KiB in 1 block: parameters, weight\n"));
  EXPECT_THAT(
      text, HasSubstr("batch 7 instead of 10 would have fitted up to this allocation, by a linear "
                      "estimate\n"));
}

TEST(OutOfMemoryReport, NamesTheLinesOfHolders) {
  const CallSites sites;
  const Budget budget(9000);
  const OutOfMemoryWatch watch({.batch = 10});
  const Phase forward(PhaseKind::forward);
  const Step step;
  const auto activation = at::empty({6000}, at::kByte);
  const int line = __LINE__ - 1;
  const auto report = report_of(6001);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->str(), HasSubstr("oom_report_test.cpp:" + std::to_string(line)));
}

TEST(OutOfMemoryReport, MayBeWatchedForInAnyOrder) {
  const Budget budget(50);
  auto first = std::make_unique<OutOfMemoryWatch>(Workload{.batch = 3});
  const auto second = std::make_unique<OutOfMemoryWatch>(Workload{.batch = 5});
  first.reset();
  const auto report = report_of(1000);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->workload.batch, 5);
}

TEST(OutOfMemoryReport, EndsTheErrorsMessageWithItsAdvice) {
  const Budget budget(1000);
  const OutOfMemoryWatch watch({.batch = 10});
  const Phase data(PhaseKind::data);
  try {
    bytes_of(2000);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(
        error.advice(),
        "batch 5 instead of 10 would have fitted up to this allocation, by a linear estimate");
  }
}

TEST(OutOfMemoryReport, NamesThePartsOfABatch) {
  const Budget budget(1000);
  const OutOfMemoryWatch whole({.batch = 50, .setting = "micro_batch"});
  const OutOfMemoryWatch parts({.batch = 10, .in_parts = true});
  const Phase validating(PhaseKind::validate);
  const auto report = report_of(2000);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->workload.setting, "micro_batch");
  EXPECT_EQ(report->advice(),
            "micro-batches of 5 instead of 10 would have fitted up to this allocation, by a "
            "linear estimate");
  EXPECT_THAT(report_of(100'000'000)->advice(), HasSubstr("not even micro-batches of 1 instead"));
}

TEST(OutOfMemoryReport, SaysWhenNotEvenOneSampleFits) {
  const Budget budget(50);
  const OutOfMemoryWatch watch({.batch = 4});
  const Phase forward(PhaseKind::forward);
  const auto report = report_of(1000);
  EXPECT_EQ(report->fitting_batch, 0);
  EXPECT_THAT(report->str(), HasSubstr("not even batch 1 instead of 4 would have fitted"));
}

TEST(OutOfMemoryReport, LeavesTheBatchOutWhereItDoesNotMatter) {
  const Budget budget(50);
  const OutOfMemoryWatch watch({.batch = 4});
  EXPECT_EQ(report_of(1000)->fitting_batch, std::nullopt) << "in no phase";
  {
    const Phase step(PhaseKind::step);
    EXPECT_EQ(report_of(1000)->fitting_batch, std::nullopt);
  }
  EXPECT_EQ(last_out_of_memory()->advice(), "");
}

TEST(OutOfMemoryReport, CountsTheMachinesMemoryWhereTheSystemRefuses) {
  const OutOfMemoryWatch watch({.batch = 1000});
  const Phase forward(PhaseKind::forward);
  const auto report = report_of(int64_t{1} << 60);
  EXPECT_EQ(report->budget_bytes, std::nullopt);
  EXPECT_EQ(report->fitting_batch, 0) << "of an exbibyte for 1000 samples";
}

TEST(OutOfMemoryReport, TakesFromTheWatchAroundWhatItLacks) {
  const Budget budget(50);
  const OutOfMemoryWatch outer({.batch = 3, .setting = "phases.1.batch"});
  const OutOfMemoryWatch inner({.batch = 8});
  const auto report = report_of(1000);
  EXPECT_EQ(report->workload.batch, 8);
  EXPECT_EQ(report->workload.setting, "phases.1.batch");
}

TEST(OutOfMemoryReport, IsMadeInsideAWatchOnly) {
  const Budget budget(50);
  std::shared_ptr<const OutOfMemoryReport> newest;
  {
    const OutOfMemoryWatch watch({});
    newest = report_of(1000);
    ASSERT_TRUE(newest);
  }
  EXPECT_EQ(report_of(2000), newest) << "kept, and not replaced";
  const OutOfMemoryWatch watch({});
  EXPECT_EQ(last_out_of_memory(), nullptr);
}

TEST(OutOfMemoryReport, IsNotReplacedWhileItsErrorIsHandled) {
  const Budget budget(50);
  const OutOfMemoryWatch watch({});
  try {
    bytes_of(1000);
  } catch (const OutOfMemory&) {
    EXPECT_EQ(report_of(3000)->asked_bytes, 1000);
  }
  EXPECT_EQ(report_of(3000)->asked_bytes, 3000);
}

TEST(OutOfMemoryReport, ReadsNoLedgerOnAThreadBesideTheTraining) {
  Owner owner;
  int reads = 0;
  owner.while_listed = [&] { ++reads; };
  const Budget budget(50);
  const OutOfMemoryWatch watch({});
  std::thread([&] {
    const ThreadPhase data(PhaseKind::data);
    const auto report = report_of(1000);
    EXPECT_EQ(report->phase, "data");
    EXPECT_EQ(report->snapshot.categories[Category::parameters], 0);
    EXPECT_EQ(report->snapshot.allocated_bytes, host_allocator::counters().live_bytes);
  }).join();
  EXPECT_EQ(reads, 0);
  report_of(1000);
  EXPECT_EQ(reads, 1);
}

TEST(OutOfMemoryReport, NeverHidesTheRefusal) {
  Owner owner;
  const Budget budget(50);
  const OutOfMemoryWatch watch({});
  for (const std::function<void()>& mischief :
       {std::function<void()>([] { bytes_of(1000); }),
        std::function<void()>([] { throw std::runtime_error("planted"); })}) {
    owner.while_listed = mischief;
    EXPECT_EQ(report_of(1000), nullptr) << "no report, but the error";
  }
}

}  // namespace
}  // namespace tare::memory
