// Out of memory is not an error: every allocation of a step, a validation and a prediction may
// fail, and any budget may be set; the run is bit for bit the one that had used parts of that size
// from the start. A normal run fails every seventh allocation, a deep run each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "learner/micro_batch_watch.h"
#include "learner/zoo.h"
#include "support/budget.h"
#include "support/deep.h"
#include "tare/adapt/search.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"

namespace tare::testing {
namespace {

namespace host = memory::host_allocator;
using ::testing::HasSubstr;

class InMicroBatches : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t kBatch = 16, kSteps = 3;

  [[nodiscard]] static Zoo zoo() { return Zoo(GetParam()); }
  [[nodiscard]] static bool is(const char* name) { return zoo().is(name); }

  [[nodiscard]] std::unique_ptr<Learner> learner(std::optional<int64_t> micro_batch) const {
    LearnerOptions options = zoo().options(folder_);
    options.batch = kBatch;
    options.micro_batch = micro_batch;
    options.workers = 0;
    return std::make_unique<Learner>(
        zoo().model(),
        Splits{.train = zoo().set(kSteps * kBatch, 1), .valid = zoo().set(kBatch, 2)},
        std::move(options));
  }

  struct Outcome {
    State state{};
    double train_loss = 0;
    std::vector<MicroBatchChange> changes{};
    int64_t peak_bytes = 0;  // above the start

    /// Of the training's parts in the end.
    [[nodiscard]] int64_t last_size() const {
      int64_t size = kBatch;
      for (const auto& change : changes)
        if (change.phase == "train") size = change.to;
      return size;
    }
    /// Equal but for how it came to that.
    [[nodiscard]] bool operator==(const Outcome& other) const {
      return state == other.state && train_loss == other.train_loss;
    }
  };

  /// An epoch with an allocation that fails (0: none), or within a budget.
  [[nodiscard]] Outcome run(std::optional<int64_t> micro_batch, uint64_t fail_at = 0,
                            std::optional<int64_t> available_bytes = {}) const {
    const auto watch = std::make_shared<Watch>(fail_at);
    auto l = learner(micro_batch);
    torch::manual_seed(5);
    Outcome outcome;
    {
      const memory::PeakScope peak(c10::kCPU);
      std::optional<BudgetScope> budget;
      if (available_bytes) budget.emplace(*available_bytes);
      outcome.train_loss = l->fit(1, {.callbacks = {watch}}).epochs.at(0).train_loss;
      outcome.peak_bytes = peak.peak_above_start_bytes();
    }
    outcome.changes = watch->changes;
    outcome.state = capture(*l);
    return outcome;
  }

  TempDir folder_;
};

/// Between two allocations that fail; a prime, so that it falls into step with no layer.
uint64_t stride() { return reduced<uint64_t>(7, 1); }

TEST_P(InMicroBatches, EveryAllocationOfAStepMayFailOnce) {
  const int64_t before = tracked();
  {
    const Outcome halves = run(kBatch / 2);
    uint64_t k = 1;
    for (;; k += stride()) {
      const Outcome outcome = run({}, k);
      if (outcome.changes.empty()) break;
      ASSERT_EQ(outcome.changes.size(), 1U);
      EXPECT_EQ(outcome.changes[0].phase, "train");
      EXPECT_EQ(outcome.changes[0].from, kBatch);
      EXPECT_EQ(outcome.changes[0].to, kBatch / 2);
      EXPECT_THAT(outcome.changes[0].reason, HasSubstr("out of memory on cpu"));
      ASSERT_TRUE(outcome == halves) << k;
    }
    EXPECT_GT(k, 20U);
  }
  EXPECT_EQ(tracked(), before);
}

/// Calls `verb` of new Learners with each of its allocations failing once; `check` sees what it
/// returned. In the loader, which is asked for whole batches, the failure is an error, after which
/// nothing is kept. Returns how often it was none.
template <class Verb, class Check>
int64_t at_every_allocation(const std::function<std::unique_ptr<Learner>()>& make, Verb&& verb,
                            Check&& check) {
  const auto births = [] { return host::counters().births; };
  const auto first = make();
  const uint64_t start = births();
  verb(*first);
  const uint64_t count = births() - start;
  int64_t recovered = 0;
  for (uint64_t k = 1; k <= count; k += stride()) {
    const auto l = make();
    const State before = capture(*l);
    const int64_t bytes = tracked();
    host::fail_at(k);
    try {
      check(verb(*l), k);
      ++recovered;
    } catch (const OutOfMemory&) {
      EXPECT_EQ(tracked(), bytes) << k;
    }
    host::fail_at(0);
    EXPECT_TRUE(capture(*l) == before) << k;
    if (::testing::Test::HasFailure()) break;
  }
  return recovered;
}

TEST_P(InMicroBatches, EveryAllocationOfAValidationMayFailOnce) {
  const Evaluation halves = learner(kBatch / 2)->validate();
  const int64_t recovered =
      at_every_allocation([&] { return learner({}); }, [](Learner& l) { return l.validate(); },
                          [&](const Evaluation& seen, uint64_t k) {
                            EXPECT_EQ(seen.loss, halves.loss) << k;
                            EXPECT_EQ(seen.metrics.at(0).value, halves.metrics.at(0).value) << k;
                            EXPECT_EQ(seen.samples, halves.samples) << k;
                          });
  EXPECT_GT(recovered, reduced(0, 5));
}

TEST_P(InMicroBatches, EveryAllocationOfAPredictionMayFailOnce) {
  const PredictOptions options{.losses = true};
  const Predictions halves = learner(kBatch / 2)->get_preds(Split::valid, options);
  const int64_t recovered = at_every_allocation(
      [&] { return learner({}); }, [&](Learner& l) { return l.get_preds(Split::valid, options); },
      [&](const Predictions& seen, uint64_t k) {
        EXPECT_TRUE(torch::equal(seen.outputs, halves.outputs)) << k;
        EXPECT_TRUE(torch::equal(seen.losses, halves.losses)) << k;
        EXPECT_TRUE(torch::equal(seen.targets, halves.targets)) << k;
      });
  EXPECT_GT(recovered, reduced(0, 5));
}

// With models that meta tensors can plan.
class MicroBatchUnderABudget : public InMicroBatches {};

TEST_P(MicroBatchUnderABudget, TheLargestThatFitsIsFound) {
  std::map<int64_t, Outcome> fixed;  // by size
  for (int64_t size = 1; size <= kBatch; ++size) {
    if (size == 1 && is("resnet9")) continue;  // its batch norms want two samples
    fixed.emplace(size, run(size));
  }
  const int64_t least = fixed.begin()->second.peak_bytes, most = fixed.at(kBatch).peak_bytes;
  ASSERT_GT(most, least);
  std::mt19937_64 random(7);
  for (int i = 0; i < reduced(12, 50); ++i) {
    const int64_t allowed = std::uniform_int_distribution<int64_t>(least, most)(random);
    int64_t expected = fixed.begin()->first;
    for (const auto& [size, outcome] : fixed)
      if (outcome.peak_bytes <= allowed) expected = size;
    const Outcome outcome = run({}, 0, allowed);
    const int64_t found = outcome.last_size();
    const auto parts = [](int64_t size) { return (kBatch + size - 1) / size; };
    ASSERT_EQ(parts(found), parts(expected)) << "with " << allowed << " bytes";
    EXPECT_LE(outcome.peak_bytes, allowed);
    EXPECT_TRUE(outcome == fixed.at(found)) << "with " << allowed << " bytes";
  }
}

TEST_P(MicroBatchUnderABudget, AHalfAQuarterAndAnEighthAreFoundAtOnce) {
  for (const int64_t size : {kBatch / 2, kBatch / 4, kBatch / 8}) {
    const Outcome fixed = run(size), larger = run(2 * size);
    ASSERT_LT(fixed.peak_bytes, larger.peak_bytes) << size;
    const Outcome outcome = run({}, 0, fixed.peak_bytes);
    EXPECT_EQ(outcome.last_size(), size);
    EXPECT_EQ(std::ranges::count(outcome.changes, std::string("train"), &MicroBatchChange::phase),
              1);
    EXPECT_TRUE(outcome == fixed) << size;
  }
}

TEST_P(InMicroBatches, NothingFitsIsSaidAndChangesNothing) {
  auto l = learner({});
  l->optimizer().prepare();
  const State before = capture(*l);
  const int64_t bytes = tracked();
  {
    const BudgetScope budget(256);
    EXPECT_THROW(l->fit(1), OutOfMemory);
    EXPECT_THROW(static_cast<void>(l->validate()), OutOfMemory);
  }
  EXPECT_EQ(tracked(), bytes);
  EXPECT_TRUE(capture(*l) == before);
  l->fit(1);
}

INSTANTIATE_TEST_SUITE_P(Models, MicroBatchUnderABudget,
                         ::testing::Values("mlp", "resnet9", "gpt", "resnet9_recomputed"),
                         [](const auto& name) { return std::string(name.param); });
INSTANTIATE_TEST_SUITE_P(Models, InMicroBatches,
                         ::testing::Values("mlp", "resnet9", "gpt", "mlp_fp16",
                                           "resnet9_recomputed", "gpt_recomputed_bf16"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tare::testing
