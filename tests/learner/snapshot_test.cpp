// At every event of a fit, every byte has a category.
#include "tare/memory/snapshot.h"

#include <gtest/gtest.h>

#include <map>

#include "learner/zoo.h"
#include "support/deep.h"
#include "tare/callback/autosave.h"
#include "tare/callback/memory_log.h"
#include "tare/callback/memory_peak.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"

namespace tare::testing {
namespace {

/// Takes a snapshot at every event.
class Weigher final : public Callback {
 public:
  explicit Weigher(int64_t unexplained_before) : before_(unexplained_before) {}
  [[nodiscard]] std::string name() const override { return "weigher"; }
  Action before_fit(FitContext&) override { return weigh(Event::before_fit); }
  Action before_epoch(FitContext&) override { return weigh(Event::before_epoch); }
  Action before_batch(FitContext&) override { return weigh(Event::before_batch); }
  Action after_forward(FitContext&) override { return weigh(Event::after_forward); }
  Action after_loss(FitContext&) override { return weigh(Event::after_loss); }
  Action after_backward(FitContext&) override { return weigh(Event::after_backward); }
  Action after_step(FitContext&) override { return weigh(Event::after_step); }
  Action after_batch(FitContext&) override { return weigh(Event::after_batch); }
  Action before_validate(FitContext&) override { return weigh(Event::before_validate); }
  Action after_validate(FitContext&) override { return weigh(Event::after_validate); }
  Action after_epoch(FitContext&) override { return weigh(Event::after_epoch); }
  Action after_fit(FitContext&) override { return weigh(Event::after_fit); }

  Action weigh(Event event) {
    const auto snapshot = memory::take_snapshot(c10::kCPU);
    EXPECT_EQ(snapshot.unexplained_bytes, before_) << to_string(event) << '\n' << snapshot.str();
    EXPECT_EQ(snapshot.categories.total() + snapshot.unexplained_bytes, tracked());
    newest[event] = snapshot.categories;
    return Action::proceed;
  }

  std::map<Event, CategoryBytes> newest;

 private:
  int64_t before_;
};

int64_t unexplained() { return memory::take_snapshot(c10::kCPU).unexplained_bytes; }

struct Shuffled {
  const char* name;
  int64_t workers;
};
void PrintTo(const Shuffled& c, std::ostream* out) { *out << c.name << ", workers " << c.workers; }

class EveryByte : public ::testing::TestWithParam<Shuffled> {
 protected:
  [[nodiscard]] static Zoo zoo() { return Zoo(GetParam().name); }
  [[nodiscard]] Learner learner(int64_t train = 40, int64_t valid = 20) const {
    LearnerOptions options = zoo().options(folder_);
    options.workers = GetParam().workers;
    return {zoo().model(),
            {.train = zoo().set(train, 1), .valid = zoo().set(valid, 2)},
            std::move(options)};
  }
  [[nodiscard]] int64_t before() const { return unexplained_; }

 private:
  TempDir folder_;
  int64_t unexplained_ = unexplained();
};

TEST_P(EveryByte, IsExplained) {
  auto weigher = std::make_shared<Weigher>(before());
  Learner l = learner();
  weigher->weigh(Event::before_fit);
  l.fit(2, {.callbacks = {weigher, std::make_shared<Autosave>(1), weigher}});
  auto newest = weigher->newest;
  EXPECT_GT(newest[Event::after_loss][Category::activations], 0);
  const bool freed = zoo().is("step_in_backward");
  EXPECT_EQ(newest[Event::after_backward][Category::gradients] == 0, freed);
  EXPECT_GT(newest[Event::after_batch][Category::optimizer], 0);
  EXPECT_GT(newest[Event::before_batch][Category::batch], 0);
  EXPECT_GT(newest[Event::after_fit][Category::other], 0) << "the data set";
  l.validate();
  l.purge(false);
  weigher->weigh(Event::after_fit);
  l.fit(1, {.callbacks = {weigher}});
  l.purge();
  weigher->weigh(Event::after_fit);
  EXPECT_EQ(weigher->newest[Event::after_fit][Category::optimizer], 0);
}

TEST_P(EveryByte, IsExplainedWhereverMemoryRunsOut) {
  if (GetParam().workers > 0) GTEST_SKIP() << "other threads allocate in any order";
  uint64_t k = 1;
  for (;; k += reduced<uint64_t>(5, 1)) {
    Learner l = learner(16, 8);
    memory::host_allocator::fail_at(k);
    try {
      l.fit(1);
    } catch (const OutOfMemory&) {
    }
    memory::host_allocator::fail_at(0);
    const auto report = memory::last_out_of_memory();
    if (!report) break;
    EXPECT_EQ(report->snapshot.unexplained_bytes, before()) << k << ": " << report->str();
  }
  EXPECT_GT(k, 50U);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryByte,
    ::testing::Values(Shuffled{"mlp", 0}, Shuffled{"mlp", 1}, Shuffled{"mlp", 3},
                      Shuffled{"resnet9", 0}, Shuffled{"resnet9", 1}, Shuffled{"resnet9", 3},
                      Shuffled{"gpt", 1}, Shuffled{"gpt_recomputed", 0},
                      Shuffled{"resnet9_recomputed", 0}, Shuffled{"mlp_step_in_backward", 0},
                      Shuffled{"gpt_step_in_backward", 0}, Shuffled{"resnet9_fp16", 0},
                      Shuffled{"gpt_bf16", 1}, Shuffled{"gpt_bf16-true", 0},
                      Shuffled{"gpt_recomputed_bf16", 0}));

TEST(Unexplained, GrowsWithOutputsThatACallbackKeeps) {
  const TempDir folder;
  struct Keep final : Callback {
    [[nodiscard]] std::string name() const override { return "keep"; }
    Action after_forward(FitContext& c) override {
      kept.push_back(c.output().detach());
      return Action::proceed;
    }
    std::vector<at::Tensor> kept;
  };
  const int64_t before = unexplained();
  const auto keep = std::make_shared<Keep>();
  Learner learner(make_net(), split_points(90, 30), quiet(folder));
  learner.fit(1, {.callbacks = {keep}});
  int64_t bytes = 0;
  for (const auto& output : keep->kept) bytes += static_cast<int64_t>(output.nbytes());
  EXPECT_EQ(unexplained() - before, bytes);
  EXPECT_EQ(bytes, 90 * kClasses * 4);
}

TEST(MemoryLog, HasAColumnOfUnexplainedMemory) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  const double before = static_cast<double>(unexplained());
  const auto fit = learner.fit(1, {.callbacks = {std::make_shared<MemoryLog>()}});
  const auto& column = fit.epochs.at(0).metrics.back();
  EXPECT_EQ(column.name, "unexplained_mib");
  EXPECT_EQ(column.value * (1 << 20), before);
}

TEST(MemoryPeak, KeepsTheLargestMoment) {
  const TempDir folder;
  const int64_t before = unexplained();
  const auto peak = std::make_shared<MemoryPeak>();
  EXPECT_EQ(peak->str(), "");
  Learner learner(make_net(), split_points(), quiet(folder));
  const memory::PeakScope scope(c10::kCPU);
  learner.fit(2, {.callbacks = {peak}});
  ASSERT_TRUE(peak->snapshot());
  EXPECT_LE(peak->snapshot()->allocated_bytes, scope.peak_bytes());
  EXPECT_GT(peak->snapshot()->allocated_bytes, tracked());
  EXPECT_EQ(peak->snapshot()->unexplained_bytes, before);
  EXPECT_EQ(peak->str().substr(0, 14), "largest after_");
}

}  // namespace
}  // namespace tare::testing
