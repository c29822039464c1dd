// The fit loop against loops written by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "learner/fixture.h"
#include "tare/base/error.h"
#include "tare/callback/monitor.h"
#include "tare/callback/recorder.h"
#include "tare/data/loader.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/optim/torch_optimizer.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

constexpr int64_t kSteps = 50;

// The batches of the Learner's epochs, taken from a loader of the same options.
std::vector<Batch> batches_of(const DatasetPtr& data, const LearnerOptions& options,
                              int64_t epochs) {
  Loader loader(data,
                {.batch = options.batch, .shuffle = true, .seed = options.seed, .training = true});
  std::vector<Batch> all;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    loader.start(epoch);
    for (Batch batch; loader.next(batch);)
      all.push_back({batch.input().clone(), batch.target().clone()});
  }
  return all;
}

struct Trained {
  std::vector<double> losses;
  torch::Tensor weights;
};

template <class Module, class MakeOptimizer>
Trained by_hand(Module net, const LearnerOptions& options, MakeOptimizer make) {
  torch::manual_seed(5);
  const torch::Device device(test_device());
  net->to(device);
  auto optimizer = make(net->parameters());
  Trained result;
  for (const auto& batch : batches_of(split_points().train, options, 10)) {
    if (static_cast<int64_t>(result.losses.size()) == kSteps) break;
    optimizer->zero_grad();
    auto loss = torch::nn::functional::cross_entropy(net->forward(batch.input().to(device)),
                                                     batch.target().to(device));
    loss.backward();
    optimizer->step();
    result.losses.push_back(loss.template item<float>());
  }
  Model model(net);
  result.weights = flat(model);
  return result;
}

// Stops a fit after kSteps steps.
struct StopAt final : Callback {
  [[nodiscard]] std::string name() const override { return "stop_at"; }
  Action after_batch(FitContext& c) override {
    return c.step >= kSteps ? Action::stop_fit : Action::proceed;
  }
};

Trained by_learner(Model model, LearnerOptions options, double lr) {
  auto recorder = std::make_shared<Recorder>();
  Splits data = split_points();
  data.valid.reset();
  Learner learner(std::move(model), data, std::move(options));
  torch::manual_seed(5);
  learner.fit(10, {.lr = lr, .callbacks = {recorder, std::make_shared<StopAt>()}});
  Trained result;
  for (const auto& step : recorder->steps()) result.losses.push_back(step.loss);
  result.weights = flat(learner.model());
  return result;
}

const auto make_adam = [](auto parameters) {
  return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.01));
};

TEST(Fit, WithTorchSgdIsBitEqualToAHandWrittenLoop) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  const auto defaults = torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01);
  options.optimizer_factory = torch_optimizer<torch::optim::SGD>(defaults);
  const Trained hand = by_hand(make_net(), options, [&](auto p) {
    return std::make_unique<torch::optim::SGD>(p, defaults);
  });
  const Trained learner = by_learner(make_net(), options, 0.05);
  ASSERT_EQ(hand.losses.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(hand.losses, learner.losses);
  EXPECT_TRUE(torch::equal(hand.weights, learner.weights));
}

TEST(Fit, WithTorchAdamIsBitEqualToAHandWrittenLoop) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.optimizer_factory = torch_optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.01));
  const Trained hand = by_hand(make_net(), options, make_adam);
  const Trained learner = by_learner(make_net(), options, 0.01);
  EXPECT_EQ(hand.losses, learner.losses);
  EXPECT_TRUE(torch::equal(hand.weights, learner.weights));
}

// Without a normalisation layer: a bias in front of one has only rounding noise for a gradient,
// which Adam blows up.
torch::nn::Sequential make_plain() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(kFeatures, 16), torch::nn::ReLU(),
                               torch::nn::Linear(16, kClasses));
}

TEST(Fit, WithTheFusedAdamIsWithinRoundingOfTorch) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.optimizer = {.kind = "adam", .lr = 0.01, .weight_decay = 0};
  const Trained hand = by_hand(make_plain(), options, make_adam);
  const Trained learner = by_learner(make_plain(), options, 0.01);
  constexpr double kRounding = 1e-6;  // 50 steps of float32 in another order of operations
  for (size_t i = 0; i < hand.losses.size(); ++i)
    EXPECT_NEAR(hand.losses[i], learner.losses[i], kRounding) << i;
  EXPECT_LT((hand.weights - learner.weights).abs().max().item<double>(), kRounding);
}

TEST(Fit, LearnsAndReportsEveryEpoch) {
  const TempDir folder;
  Learner learner(make_net(), split_points(300, 60), quiet(folder));
  const FitResult result = learner.fit_one_cycle(5, {.max_lr = 0.02});
  ASSERT_EQ(result.epochs.size(), 5U);
  EXPECT_EQ(result.reason, StopReason::finished);
  EXPECT_EQ(result.steps, 5 * 19);
  EXPECT_LT(result.epochs.back().train_loss, 0.5 * result.epochs.front().train_loss);
  ASSERT_EQ(result.epochs.back().metrics.size(), 1U);
  EXPECT_EQ(result.epochs.back().metrics[0].name, "accuracy");
  EXPECT_GT(result.epochs.back().metrics[0].value, 0.9);
  EXPECT_EQ(result.epochs.back().samples, 300);
  EXPECT_EQ(learner.history().size(), 5U);
  EXPECT_EQ(learner.fit(1).epochs[0].epoch, 6) << "epochs are numbered over the Learner's life";
}

TEST(Fit, FollowsTheOneCycleCurveAndTheRatesOfTheGroups) {
  const TempDir folder;
  auto recorder = std::make_shared<Recorder>();
  Learner learner(make_net(), split_points(96, 16), quiet(folder));
  learner.fit_one_cycle(10, {.max_lr = lr_range(1e-4, 1e-2), .callbacks = {recorder}});
  ASSERT_EQ(recorder->steps().size(), 60U);
  for (int64_t step = 0; step < 60; ++step) {
    EXPECT_DOUBLE_EQ(recorder->steps()[static_cast<size_t>(step)].lr, one_cycle_lr(step, 60, 1e-2));
  }
  const auto& groups = learner.optimizer().groups();
  EXPECT_NEAR(groups.front().lr / groups.back().lr, 1e-2, 1e-9);
}

TEST(Fit, RefusesBadInputBeforeAnyWork) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  EXPECT_THROW(learner.fit(0), ConfigError);
  EXPECT_THROW(learner.fit(1, {.lr = -1.0}), ConfigError);
  EXPECT_THROW(learner.fit(1, {.schedule = {.kind = "saw"}}), ConfigError);
  Learner no_data(make_net(), {}, quiet(folder));
  EXPECT_THROW(no_data.fit(1), StateError);
  LearnerOptions unknown = quiet(folder);
  unknown.loss = "cross_entropi";
  EXPECT_THROW(Learner(make_net(), split_points(), unknown), ConfigError);
  LearnerOptions device = quiet(folder);
  device.device = "tpu";
  EXPECT_THROW(Learner(make_net(), split_points(), device), ConfigError);
}

TEST(Fit, RunsATaskForModelsWithTheirOwnStep) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.metrics.clear();
  options.task.step = [](Model& model, const Batch& batch) {
    auto& net = model.as<NetImpl>();
    auto output = net.forward(batch.input());
    return StepResult{
        torch::mse_loss(output, torch::one_hot(batch.target(), kClasses).to(torch::kFloat)),
        output};
  };
  Learner learner(make_net(), split_points(), options);
  const FitResult result = learner.fit(4, {.lr = 0.02});
  EXPECT_LT(result.epochs.back().valid_loss, result.epochs.front().valid_loss);
  EXPECT_EQ(learner.get_preds(Split::valid, {.activation = false}).outputs.sizes(),
            (at::IntArrayRef{30, kClasses}));
}

TEST(Fit, StopsCleanlyAtAnInterruptAndGoesOn) {
  const TempDir folder;
  struct Ask final : Callback {
    [[nodiscard]] std::string name() const override { return "ask"; }
    Action after_batch(FitContext& c) override {
      if (c.step == 7) request_interrupt();
      return Action::proceed;
    }
  };
  Learner straight(make_net(), split_points(), quiet(folder));
  torch::manual_seed(3);
  straight.fit_one_cycle(3);

  Learner learner(make_net(), split_points(), quiet(folder));
  torch::manual_seed(3);
  const FitResult first = learner.fit_one_cycle(3, {.callbacks = {std::make_shared<Ask>()}});
  EXPECT_EQ(first.reason, StopReason::interrupted);
  EXPECT_EQ(first.steps, 7);
  EXPECT_FALSE(interrupt_requested());
  ASSERT_TRUE(learner.can_resume());
  const FitResult rest = learner.resume();
  EXPECT_EQ(rest.epochs.size(), 3U);
  EXPECT_EQ(rest.steps, 18 - 7);
  EXPECT_TRUE(torch::equal(flat(straight.model()), flat(learner.model())));
  EXPECT_FALSE(learner.can_resume());
}

TEST(Fit, KeepsTheOrderOfTheSamplesIfItMayNotShuffle) {
  struct Targets final : Callback {
    [[nodiscard]] std::string name() const override { return "targets"; }
    Action after_batch(FitContext& c) override {
      all.push_back(c.data.target().clone());
      return Action::proceed;
    }
    std::vector<torch::Tensor> all;
  };
  const TempDir folder;
  const auto seen = [&](bool shuffle) {
    LearnerOptions options = quiet(folder);
    options.shuffle = shuffle;
    Learner learner(make_net(), split_points(), options);
    const auto targets = std::make_shared<Targets>();
    learner.fit(2, {.callbacks = {targets}});
    return torch::cat(targets->all).cpu();
  };
  const auto in_order = split_points().train->targets().repeat({2});
  EXPECT_TRUE(torch::equal(seen(false), in_order));
  EXPECT_FALSE(torch::equal(seen(true), in_order));
}

TEST(Fit, KeepsNothingOfAFailedStepAndStaysUsable) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.micro_batch = options.batch;
  Learner learner(make_net(), split_points(), options);
  learner.fit(1);
  const int64_t bytes = tracked(), count = blocks();
  for (const uint64_t k : {3U, 12U, 25U, 40U}) {
    memory::host_allocator::fail_at(k);
    EXPECT_THROW(learner.fit(1), OutOfMemory) << k;
    memory::host_allocator::fail_at(0);
    EXPECT_EQ(tracked(), bytes) << k;
    EXPECT_EQ(blocks(), count) << k;
  }
  EXPECT_EQ(learner.fit(1).reason, StopReason::finished);
}

TEST(Fit, StopsAtANanLossBeforeTheWeightsAreTouched) {
  const TempDir folder;
  auto input = torch::randn({32, kFeatures});
  input[0][0] = std::nan("");
  LearnerOptions options = quiet(folder);
  options.batch = 32;
  Learner learner(make_net(), {.train = tensor_dataset(input, torch::arange(32) % kClasses)},
                  options);
  const auto before = learner.model().parameters()[0].tensor.clone();
  const FitResult result = learner.fit(3, {.callbacks = {std::make_shared<StopOnNan>()}});
  EXPECT_EQ(result.reason, StopReason::callback);
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(torch::equal(before, learner.model().parameters()[0].tensor));
}

}  // namespace
}  // namespace tare::testing
