// Micro-batches beside the step itself: callbacks, errors, gradients, regrowth, what is remembered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/micro_batch_watch.h"
#include "support/budget.h"
#include "tare/adapt/search.h"
#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/memory/snapshot.h"
#include "tare/model/registry.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace host = memory::host_allocator;
using ::testing::ElementsAre;

struct Scene {
  TempDir folder;
  LearnerOptions options = quiet(folder);
  Scene() {
    options.batch = 30;
    options.workers = 0;
  }
  [[nodiscard]] Learner learner(int64_t samples = 30) {
    return {make_net(), split_points(samples, 30), options};
  }
};

/// Needs `bytes` for each sample of a part, for a moment.
struct Needs final : Callback {
  explicit Needs(Event e, int64_t b) : event(e), bytes(b) {}
  [[nodiscard]] std::string name() const override { return "needs"; }
  Action use(Event now, FitContext& c) {
    seen.push_back(to_string(now));
    if (now == event) static_cast<void>(torch::empty({c.data.size() * bytes}, torch::kByte));
    return Action::proceed;
  }
  Action before_batch(FitContext& c) override { return use(Event::before_batch, c); }
  Action after_forward(FitContext& c) override { return use(Event::after_forward, c); }
  Action after_loss(FitContext& c) override { return use(Event::after_loss, c); }
  Action after_backward(FitContext& c) override { return use(Event::after_backward, c); }
  Action on_micro_batch(FitContext& c) override { return use(Event::on_micro_batch, c); }
  Action after_step(FitContext& c) override { return use(Event::after_step, c); }
  Action after_batch(FitContext& c) override { return use(Event::after_batch, c); }
  Event event;
  int64_t bytes;
  std::vector<std::string> seen{};
};

TEST(MicroBatches, ACallbackBesidesTheStepMayRunOutOfMemoryToo) {
  Scene s;
  auto l = s.learner();
  const auto needs = std::make_shared<Needs>(Event::after_loss, int64_t{1} << 20);
  const BudgetScope budget(int64_t{20} << 20);
  l.fit(1, {.callbacks = {needs}});
  EXPECT_THAT(needs->seen,
              ElementsAre("before_batch", "after_forward", "after_loss",  // 30 samples
                          "after_forward", "after_loss", "after_forward", "after_loss",
                          "after_backward", "after_step", "on_micro_batch", "after_batch"));
}

TEST(MicroBatches, OutOfMemoryOfAnotherEventEndsTheFit) {
  for (const Event event : {Event::before_batch, Event::after_step, Event::after_batch}) {
    Scene s;
    auto l = s.learner();
    const auto needs = std::make_shared<Needs>(event, int64_t{1} << 20);
    const BudgetScope budget(int64_t{20} << 20);
    EXPECT_THROW(l.fit(1, {.callbacks = {needs}}), OutOfMemory) << to_string(event);
    EXPECT_EQ(std::ranges::count(needs->seen, "on_micro_batch"), 0);
  }
}

TEST(MicroBatches, AnyOtherErrorPassesThroughAfterOneCall) {
  Scene s;
  int calls = 0;
  s.options.task.step = [&](::tare::Model&, const Batch&) -> StepResult {
    ++calls;
    throw std::runtime_error("planted");
  };
  auto l = s.learner();
  EXPECT_THROW(l.fit(1), std::runtime_error);
  EXPECT_EQ(calls, 1);
}

TEST(MicroBatches, AStepThatKeepsFailingTellsEverySize) {
  Scene s;
  s.options.task.step = [&](::tare::Model&, const Batch&) -> StepResult { throw std::bad_alloc(); };
  auto l = s.learner();
  try {
    l.fit(1);
    FAIL() << "was done";
  } catch (const adapt::NothingFits& error) {
    EXPECT_THAT(error.tried(), ElementsAre(30, 15, 6, 3, 1));
  }
}

TEST(MicroBatches, GradientsAddUpToThoseOfTheWholeBatch) {
  for (const bool ignored : {false, true}) {
    torch::manual_seed(3);
    const auto input = torch::randn({24, kFeatures});
    auto target = torch::randint(kClasses, {24});
    if (ignored) target.slice(0, 3, 17).fill_(-100);  // parts without any label
    const auto train = tensor_dataset(input, target);
    const auto gradient = [&](int64_t micro_batch, double& loss) {
      struct Keep final : Callback {
        [[nodiscard]] std::string name() const override { return "keep"; }
        Action after_backward(FitContext& c) override {
          for (const auto& p : c.learner.model().parameters())
            gradients.push_back(p.tensor.grad().flatten().clone());
          return Action::skip;
        }
        std::vector<torch::Tensor> gradients;
      };
      Scene s;
      s.options.batch = 24;
      s.options.micro_batch = micro_batch;
      torch::manual_seed(1);
      Learner l(::tare::Model(torch::nn::Linear(kFeatures, kClasses)), {.train = train}, s.options);
      const auto keep = std::make_shared<Keep>();
      loss = l.fit(1, {.callbacks = {keep}}).epochs[0].train_loss;
      return torch::cat(keep->gradients);
    };
    double whole_loss = 0, loss = 0;
    const auto whole = gradient(24, whole_loss);
    for (const int64_t size : {1, 5, 7, 12, 23}) {
      constexpr double kRounding = 1e-6;  // float sums in another order
      EXPECT_LT((gradient(size, loss) - whole).abs().max().item<double>(), kRounding) << size;
      EXPECT_NEAR(loss, whole_loss, kRounding) << size;
    }
  }
}

TEST(MicroBatches, EarlierGradientsSurviveAFailedStep) {
  // Two batches add up to one step; the second fails once.
  const auto gradients = [](std::optional<int64_t> micro_batch, bool fail) {
    struct Accumulate final : Callback {
      [[nodiscard]] std::string name() const override { return "accumulate"; }
      Action before_batch(FitContext& c) override {
        if (fail && c.batch == 1) host::fail_at(4);
        return Action::proceed;
      }
      Action after_backward(FitContext& c) override {
        if (c.batch == 0) return Action::skip;
        for (const auto& p : c.learner.model().parameters())
          gradients.push_back(p.tensor.grad().flatten().clone());
        return Action::stop_fit;
      }
      bool fail = false;
      std::vector<torch::Tensor> gradients;
    };
    Scene s;
    s.options.batch = 15;
    s.options.micro_batch = micro_batch;
    Learner l(make_net(), {.train = points(30, 11)}, s.options);
    torch::manual_seed(5);
    const auto accumulate = std::make_shared<Accumulate>();
    accumulate->fail = fail;
    l.fit(1, {.callbacks = {accumulate}});
    return torch::cat(accumulate->gradients);
  };
  const auto straight = gradients(15, false), failed = gradients({}, true);
  // The second batch was done in two parts, with batch norm over each: near, not equal.
  EXPECT_EQ(failed.sizes(), straight.sizes());
  EXPECT_LT((failed - straight).norm().item<double>(), 0.5 * straight.norm().item<double>());
  EXPECT_FALSE(torch::equal(failed, straight));
}

TEST(MicroBatches, WhatBeforeBatchDrewIsNotDrawnAgain) {
  struct Noise final : Callback {
    explicit Noise(uint64_t k) : fail_at(k) {}
    [[nodiscard]] std::string name() const override { return "noise"; }
    Action before_batch(FitContext& c) override {
      c.data.set_input(c.data.input() + 0.1 * torch::randn(c.data.input().sizes()));
      if (c.step == 0) host::fail_at(fail_at);
      return Action::proceed;
    }
    Action after_batch(FitContext&) override {
      host::fail_at(0);
      return Action::proceed;
    }
    uint64_t fail_at;
  };
  const auto run = [](std::optional<int64_t> micro_batch, uint64_t fail_at) {
    Scene s;
    s.options.micro_batch = micro_batch;
    auto l = s.learner(60);
    torch::manual_seed(5);
    l.fit(1, {.callbacks = {std::make_shared<Noise>(fail_at)}});
    return flat(l.model());
  };
  EXPECT_TRUE(torch::equal(run({}, 9), run(15, 0)));
}

TEST(MicroBatches, ASkippedPartLeavesNoGradientsOfTheBatch) {
  struct Skip final : Callback {
    [[nodiscard]] std::string name() const override { return "skip"; }
    Action after_loss(FitContext& c) override {
      losses.push_back(c.loss_value());
      return c.micro_batch == 1 ? Action::skip : Action::proceed;
    }
    std::vector<double> losses;
  };
  Scene s;
  s.options.micro_batch = 10;
  auto l = s.learner();
  const auto skip = std::make_shared<Skip>();
  const FitResult result = l.fit(1, {.callbacks = {skip}});
  EXPECT_EQ(result.steps, 0);
  ASSERT_EQ(skip->losses.size(), 2U) << "the third part is left out";
  EXPECT_NEAR(result.epochs[0].train_loss, (skip->losses[0] + skip->losses[1]) / 2, 1e-6);
  EXPECT_EQ(l.purge().freed[Category::gradients], 0);
}

TEST(MicroBatches, AskingThePlanChangesNeitherStepsNorInterrupts) {
  struct Watcher final : Callback {
    [[nodiscard]] std::string name() const override { return "watcher"; }
    Action before_batch(FitContext& c) override {
      if (c.step == 0) {
        host::fail_at(9);
        request_interrupt();
      }
      before = memory::current_step();
      return Action::proceed;
    }
    Action on_micro_batch(FitContext&) override {
      changed = true;
      EXPECT_EQ(memory::current_step(), before);
      EXPECT_TRUE(memory::step_under_way());
      return Action::proceed;
    }
    Action after_batch(FitContext&) override {
      host::fail_at(0);
      return Action::proceed;
    }
    uint32_t before = 0;
    bool changed = false;
  };
  Scene s;
  torch::manual_seed(1);
  Learner l(models::make("mlp", {.classes = kClasses, .sample_shape = {kFeatures}}),
            split_points(60, 30), s.options);
  const auto watcher = std::make_shared<Watcher>();
  const FitResult result = l.fit(1, {.callbacks = {watcher}});
  EXPECT_TRUE(watcher->changed);
  EXPECT_EQ(result.reason, StopReason::interrupted);
  EXPECT_EQ(result.steps, 1);
}

TEST(MicroBatches, EveryByteIsExplained) {
  struct Weigh final : Callback {
    [[nodiscard]] std::string name() const override { return "weigh"; }
    Action look() {
      const auto snapshot = memory::take_snapshot(c10::kCPU);
      EXPECT_EQ(snapshot.unexplained_bytes, start);
      ++looks;
      return Action::proceed;
    }
    Action before_fit(FitContext&) override {
      start = memory::take_snapshot(c10::kCPU).unexplained_bytes;
      return Action::proceed;
    }
    Action after_forward(FitContext&) override { return look(); }
    Action after_loss(FitContext&) override { return look(); }
    Action after_backward(FitContext&) override { return look(); }
    Action after_batch(FitContext&) override { return look(); }
    int64_t start = 0;
    int looks = 0;
  };
  Scene s;
  s.options.micro_batch = 7;
  auto l = s.learner();
  const auto weigh = std::make_shared<Weigh>();
  l.fit(1, {.callbacks = {weigh}});
  EXPECT_EQ(weigh->looks, 2 * 5 + 2);
}

TEST(MicroBatches, ChangesOutsideAFitAreToldToo) {
  struct Listener final : Callback {
    [[nodiscard]] std::string name() const override { return "listener"; }
    Action on_micro_batch(FitContext& c) override {
      heard.push_back(c.micro_batch_change->phase);
      return Action::proceed;
    }
    std::vector<std::string> heard;
  };
  Scene s;
  const auto listener = std::make_shared<Listener>();
  s.options.callbacks = {listener};
  auto l = s.learner();
  host::fail_at(8);
  l.validate();
  host::fail_at(8);
  (void)l.get_preds(Split::valid);
  host::fail_at(0);
  EXPECT_THAT(listener->heard, ::testing::ElementsAre("validate", "predict"));
}

TEST(MicroBatches, AFixedSizeIsNotChanged) {
  Scene s;
  s.options.micro_batch = 10;
  auto l = s.learner();
  const auto watch = std::make_shared<Watch>(3);
  EXPECT_THROW(l.fit(1, {.callbacks = {watch}}), OutOfMemory);
  host::fail_at(0);
  EXPECT_TRUE(watch->changes.empty());
}

TEST(MicroBatches, ASizeBelowOneOrAboveTheBatchIsRefused) {
  Scene s;
  for (const int64_t size : {int64_t{0}, int64_t{-3}, int64_t{31}}) {
    s.options.micro_batch = size;
    EXPECT_THROW(static_cast<void>(s.learner()), ConfigError) << size;
  }
  s.options.micro_batch = 30;
  auto l = s.learner();
  l.set_data(split_points(), 29);
  EXPECT_THROW(l.fit(1), ConfigError);
  EXPECT_THROW(l.set_up({.micro_batch = MicroBatch{0}}), ConfigError);
  EXPECT_THROW(l.set_up({.micro_batch = MicroBatch{30}}), ConfigError);
  l.set_up({.micro_batch = MicroBatch{}});
  EXPECT_THROW(l.fit(1, {.first_micro_batch = 30}), ConfigError);
  EXPECT_THROW(l.fit(1, {.first_micro_batch = -1}), ConfigError);
}

TEST(MicroBatches, GrowAgainWhenThereIsRoom) {
  Scene s;
  s.options.batch = 10;
  auto l = s.learner(400);
  const auto watch = std::make_shared<Watch>(5);
  l.fit(1, {.callbacks = {watch}});
  ASSERT_EQ(watch->changes.size(), 2U);
  EXPECT_EQ(watch->changes[0].to, 5);
  EXPECT_EQ(watch->changes[1].from, 5);
  EXPECT_EQ(watch->changes[1].to, 10);
  EXPECT_EQ(watch->changes[1].reason, "");
}

TEST(MicroBatches, AreRememberedFromFitToFit) {
  Scene s;
  auto l = s.learner();
  const auto first = std::make_shared<Watch>(5), second = std::make_shared<Watch>();
  l.fit(1, {.callbacks = {first}});
  EXPECT_EQ(first->changes.size(), 1U);
  struct Parts final : Callback {
    [[nodiscard]] std::string name() const override { return "parts"; }
    Action after_loss(FitContext& c) override {
      parts = c.micro_batches;
      return Action::proceed;
    }
    int64_t parts = 0;
  };
  const auto parts = std::make_shared<Parts>();
  l.fit(1, {.callbacks = {second, parts}});
  EXPECT_TRUE(second->changes.empty());
  EXPECT_EQ(parts->parts, 2);
}

TEST(MicroBatches, OfPredictionsStartWhereTheCallerSays) {
  Scene s;
  std::vector<int64_t> sizes;
  s.options.task.step = [&](Model& model, const Batch& batch) -> StepResult {
    sizes.push_back(batch.size());
    const auto outputs = model.forward(batch);
    return {torch::cross_entropy_loss(outputs.front(), batch.target()), outputs};
  };
  auto l = s.learner();
  const auto whole = l.get_preds(Split::valid).outputs;
  EXPECT_EQ(std::ranges::max(sizes), 30);
  s.options.folder = s.options.folder / "other";
  auto in_parts = s.learner();
  sizes.clear();
  EXPECT_TRUE(torch::allclose(in_parts.get_preds(Split::valid, {.first_micro_batch = 10}).outputs,
                              whole, 1e-5, 1e-6));
  EXPECT_EQ(std::ranges::max(sizes), 10);
}

TEST(MicroBatches, StartWhereTheCallerSays) {
  Scene s;
  auto l = s.learner();
  const auto needs = std::make_shared<Needs>(Event::on_micro_batch, 0);
  l.fit(1, {.callbacks = {needs}, .first_micro_batch = 10});
  EXPECT_EQ(std::ranges::count(needs->seen, "after_loss"), 3);
  EXPECT_EQ(std::ranges::count(needs->seen, "after_backward"), 1);
}

}  // namespace
}  // namespace tare::testing
