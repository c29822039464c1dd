// Tests what LeakWatch warns of, and what it leaves alone.
#include "tare/callback/leak_watch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "callback/fake_learner.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/phase.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LeakWatchTest : public ::testing::Test {
 protected:
  void keep(int64_t bytes) { kept_.push_back(at::empty({bytes}, at::kByte)); }
  /// Ends an epoch; returns what was printed.
  std::string epoch() {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(watch_.after_epoch(context_), Action::proceed);
    return ::testing::internal::GetCapturedStderr();
  }

  FakeLearner learner_;
  /// Ends a batch of a fit of one epoch; returns what was printed.
  std::string batch() {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(watch_.after_batch(context_), Action::proceed);
    return ::testing::internal::GetCapturedStderr();
  }
  void make_short() {
    context_.epochs = 1;
    context_.batches = context_.steps = 8;
  }

  FitContext context_{.learner = learner_, .epochs = 6, .batches = 8};
  LeakWatch watch_;
  std::vector<at::Tensor> kept_;
};

TEST_F(LeakWatchTest, WarnsOnceOfWhatGrewThreeTimes) {
  const memory::Phase phase("unwatched_growth");
  keep(100);
  watch_.before_fit(context_);
  for (int i = 0; i < 2; ++i) {
    keep(1000);
    EXPECT_EQ(epoch(), "") << i;
  }
  keep(1000);
  EXPECT_THAT(epoch(), HasSubstr("grew in each of the last 3 epochs: 100 B, 1.1 KiB, 2.1 KiB, 3 "
                                 "KiB on cpu, born in phase unwatched_growth; let go"));
  keep(1000);
  EXPECT_EQ(epoch(), "");
  ASSERT_EQ(watch_.found().size(), 1U);
  EXPECT_THAT(watch_.found()[0].bytes, ElementsAre(100, 1100, 2100, 3100));
  watch_.before_fit(context_);
  EXPECT_TRUE(watch_.found().empty());
}

TEST_F(LeakWatchTest, NamesTheLine) {
  const memory::CallSites sites;
  watch_.before_fit(context_);
  int line = 0;
  for (int i = 0; i < 3; ++i) {
    kept_.push_back(at::empty({50}));
    line = __LINE__ - 1;
    epoch();
  }
  ASSERT_EQ(watch_.found().size(), 1U);
  EXPECT_THAT(watch_.found()[0].bytes, ElementsAre(0, 200, 400, 600));
  EXPECT_THAT(watch_.found()[0].str(),
              HasSubstr("leak_watch_test.cpp:" + std::to_string(line) + " ("));
}

TEST_F(LeakWatchTest, LooksAtAShortFitInQuarters) {
  const memory::Phase phase("short_fit");
  make_short();
  watch_.before_fit(context_);
  std::string printed;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(printed, "") << i;
    keep(LeakWatch::kLargeBytes / 4);
    printed = batch();
  }
  EXPECT_THAT(printed, HasSubstr("grew in each of the last 3 quarters of the fit: 512 KiB, 1 MiB, "
                                 "1.5 MiB, 2 MiB on cpu"));
  EXPECT_EQ(epoch(), "");
  ASSERT_EQ(watch_.found().size(), 1U);
}

TEST_F(LeakWatchTest, IsSilentAboutLittleAndAboutWhatIsMadeOnceInAShortFit) {
  make_short();
  watch_.before_fit(context_);
  keep(100 * LeakWatch::kLargeBytes);
  for (int i = 0; i < 8; ++i) {
    keep(1000);
    EXPECT_EQ(batch(), "");
  }
}

TEST_F(LeakWatchTest, WarnsAtOnceOfAGraphThatIsKept) {
  watch_.before_fit(context_);
  const auto weight = at::ones({64}).set_requires_grad(true);
  at::Tensor kept;
  std::string printed;
  for (context_.step = 0; context_.step < 4; ++context_.step) {
    const memory::Step step;
    ::testing::internal::CaptureStderr();
    watch_.before_batch(context_);
    printed += ::testing::internal::GetCapturedStderr();
    context_.loss = weight.mul(weight).sum();
    watch_.after_loss(context_);
    // A tensor made from the loss holds its graph too; a detached copy holds nothing.
    kept = context_.step == 2 ? context_.loss.mul(2) : context_.loss.detach();
    context_.loss.reset();
  }
  EXPECT_THAT(printed, HasSubstr("the graph of step 3 was still alive when the next batch began"));
  ASSERT_TRUE(watch_.kept_graph());
  EXPECT_EQ(watch_.kept_graph()->step, 3);
  watch_.before_fit(context_);
  EXPECT_FALSE(watch_.kept_graph());
}

TEST_F(LeakWatchTest, IsSilentAboutWhatStoppedGrowing) {
  watch_.before_fit(context_);
  for (const int64_t bytes : {10, 20, 0, 30, 40, 0}) {
    if (bytes > 0) keep(bytes);
    EXPECT_EQ(epoch(), "");
  }
  EXPECT_TRUE(watch_.found().empty());
}

TEST_F(LeakWatchTest, IsSilentAboutWhatALedgerHas) {
  struct Owner final : Accountable {
    [[nodiscard]] std::string account_name() const override { return "owner"; }
    [[nodiscard]] Ledger ledger() const override {
      Ledger ledger;
      for (const auto& tensor : tensors) ledger.add(Category::other, "kept", tensor);
      return ledger;
    }
    PurgeReport purge_account(const PurgeOptions&) override { return {}; }
    std::vector<at::Tensor> tensors;
  } owner;
  watch_.before_fit(context_);
  for (int i = 0; i < 5; ++i) {
    owner.tensors.push_back(at::empty({1000}));
    EXPECT_EQ(epoch(), "");
  }
}

}  // namespace
}  // namespace tare::testing
