// Schedules of momentum, beta2 and weight decay over a fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/optim/schedule_kinds.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

/// Notes the values of the groups with which each step is taken.
struct Values final : Callback {
  [[nodiscard]] std::string name() const override { return "values"; }
  Action after_step(FitContext& context) override {
    steps.push_back(context.learner.optimizer().groups());
    return Action::proceed;
  }
  std::vector<std::vector<ParameterGroup>> steps{};
};

struct ScheduleScene {
  TempDir folder;
  LearnerOptions options = quiet(folder);
  ScheduleScene() { options.optimizer = {.kind = "sgd", .lr = 0.01, .weight_decay = 0.04}; }
  [[nodiscard]] Learner learner() const { return {make_net(), split_points(), options}; }
};

const HyperSchedules kBoth{
    .momentum = HyperSchedule{.kind = "linear", .final_factor = 0.5},
    .weight_decay = HyperSchedule{.kind = "cosine", .warmup = 0.25, .final_factor = 0.1}};

TEST(HyperSchedules, ChangeMomentumAndWeightDecayInEachStepAndPutThemBack) {
  ScheduleScene s;
  auto l = s.learner();
  const auto values = std::make_shared<Values>();
  l.fit(2, {.schedules = kBoth, .callbacks = {values}});
  ASSERT_EQ(values->steps.size(), 12U);
  const Schedule momentum = kBoth.momentum->schedule(), decay = kBoth.weight_decay->schedule();
  for (int64_t step = 0; step < 12; ++step)
    for (const auto& group : values->steps[static_cast<size_t>(step)]) {
      EXPECT_DOUBLE_EQ(group.momentum, 0.9 * momentum.factor(step, 12)) << step;
      EXPECT_DOUBLE_EQ(group.weight_decay, group.decay ? 0.04 * decay.factor(step, 12) : 0) << step;
    }
  for (const auto& group : l.optimizer().groups()) {
    EXPECT_EQ(group.momentum, 0.9);
    EXPECT_EQ(group.weight_decay, group.decay ? 0.04 : 0);
  }
}

TEST(HyperSchedules, OfBeta2TrainAsAnOptimizerWithThatBeta2) {
  int kinds = 0;
  for (const std::string& kind : optimizer_kinds()) {
    OptimizerOptions optimizer{.kind = kind, .lr = 1e-3};
    const double beta2 = beta2_of(optimizer);
    if (beta2 == 0) continue;
    ++kinds;
    const auto weights = [&](const OptimizerOptions& chosen, const HyperSchedules& schedules) {
      ScheduleScene s;
      s.options.optimizer = chosen;
      auto l = s.learner();
      l.fit(2, {.schedules = schedules});
      for (const auto& group : l.optimizer().groups())
        EXPECT_EQ(group.beta2, beta2_of(chosen)) << kind << " after the fit";
      return flat(l.model());
    };
    HyperSchedules half{.beta2 = HyperSchedule{.kind = "piecewise"}};
    half.beta2->options.node = config::parse_text("{points: [[0, 0.5], [1, 0.5]]}", "options");
    OptimizerOptions changed = optimizer;
    changed.beta2 = 0.5 * beta2;
    EXPECT_TRUE(torch::equal(weights(optimizer, half), weights(changed, {}))) << kind;
    EXPECT_FALSE(torch::equal(weights(optimizer, half), weights(optimizer, {}))) << kind;
  }
  EXPECT_EQ(kinds, 8);
}

TEST(HyperSchedules, ChangeTheResult) {
  ScheduleScene s;
  const auto weights = [&](const HyperSchedules& schedules) {
    auto l = s.learner();
    torch::manual_seed(3);
    l.fit(2, {.schedules = schedules});
    return flat(l.model());
  };
  const auto plain = weights({});
  EXPECT_TRUE(torch::equal(plain, weights({})));
  EXPECT_FALSE(torch::equal(plain, weights({.momentum = kBoth.momentum})));
  EXPECT_FALSE(torch::equal(plain, weights({.weight_decay = kBoth.weight_decay})));
}

TEST(HyperSchedules, ContinueInAResumedFit) {
  ScheduleScene s;
  struct Ask final : Callback {
    [[nodiscard]] std::string name() const override { return "ask"; }
    Action after_batch(FitContext& c) override {
      if (c.step == 7) request_interrupt();
      return Action::proceed;
    }
  };
  const FitOptions options{.schedule = {.kind = "cosine"}, .schedules = kBoth};
  auto straight = s.learner();
  torch::manual_seed(3);
  straight.fit(3, options);
  for (const bool anew : {false, true}) {
    auto l = s.learner();
    torch::manual_seed(3);
    FitOptions stopping = options;
    stopping.callbacks = {std::make_shared<Ask>()};
    EXPECT_EQ(l.fit(3, stopping).reason, StopReason::interrupted);
    for (const auto& group : l.optimizer().groups()) EXPECT_EQ(group.momentum, 0.9);
    if (!anew) {
      l.resume();
      EXPECT_TRUE(capture(l) == capture(straight)) << "in the same Learner";
      continue;
    }
    l.save("here");
    auto other = s.learner();
    other.load("here");
    other.resume();
    EXPECT_TRUE(capture(other) == capture(straight)) << "in another Learner";
  }
}

TEST(HyperSchedules, AreForEachOfSeveralOptimizers) {
  ScheduleScene s;
  s.options.optimizer = {};
  s.options.optimizers = {
      {.name = "body", .parameters = {"first", "norm", "second"}, .options = {.lr = 1e-2}},
      {.name = "head",
       .parameters = {"head"},
       .options = {.kind = "sgd", .lr = 1e-1, .momentum = 0.5}}};
  Learner* learner = nullptr;
  std::vector<double> body, head;
  s.options.loss = Loss([&](const at::Tensor& output, const at::Tensor& target) {
    if (output.requires_grad()) {
      body.push_back(learner->optimizer("body").groups().front().momentum);
      head.push_back(learner->optimizer("head").groups().front().momentum);
    }
    return torch::nn::functional::cross_entropy(output, target);
  });
  auto l = s.learner();
  learner = &l;
  l.fit(1, {.schedules = {.momentum = HyperSchedule{.kind = "linear", .final_factor = 0.4}}});
  ASSERT_EQ(body.size(), 6U);
  for (size_t step = 0; step < 6; ++step) {
    const double factor = 1 - 0.6 * static_cast<double>(step) / 6;
    EXPECT_NEAR(body[step], 0.9 * factor, 1e-12);
    EXPECT_NEAR(head[step], 0.5 * factor, 1e-12);
  }
  EXPECT_EQ(l.optimizer("body").groups().front().momentum, 0.9);
  EXPECT_EQ(l.optimizer("head").groups().front().momentum, 0.5);
}

TEST(HyperSchedules, LeaveTheMomentumAsItWasAfterOneCycle) {
  ScheduleScene s;
  auto l = s.learner();
  l.fit_one_cycle(1);
  for (const auto& group : l.optimizer().groups()) EXPECT_EQ(group.momentum, 0.9);
}

TEST(HyperSchedules, AreRefusedWhereTheyHaveNoEffectOrContradict) {
  ScheduleScene s;
  const auto message = [&](FitOptions options) -> std::string {
    auto l = s.learner();
    try {
      l.fit(1, std::move(options));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(
      message({.schedule = {.kind = "one_cycle"}, .schedules = {.momentum = HyperSchedule{}}}),
      HasSubstr("schedules.momentum is set by the one_cycle schedule"));
  EXPECT_THAT(message({.schedules = {.weight_decay = HyperSchedule{.kind = "one_cycle"}}}),
              HasSubstr("schedules.weight_decay.kind is a schedule of the rate"));
  EXPECT_THAT(message({.schedules = {.weight_decay = HyperSchedule{.kind = "cosin"}}}),
              HasSubstr("schedules.weight_decay.kind"));
  s.options.optimizer = {.kind = "sgd", .weight_decay = 0, .momentum = 0};
  EXPECT_THAT(message({.schedules = {.momentum = HyperSchedule{}}}),
              HasSubstr("schedules.momentum has no effect, because the optimizer sgd has a momentum"
                        " of 0"));
  EXPECT_THAT(message({.schedules = {.weight_decay = HyperSchedule{}}}),
              HasSubstr("schedules.weight_decay has no effect"));
}

}  // namespace
}  // namespace tare::testing
