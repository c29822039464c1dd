// mixup and cutmix in a fit: resumed at any step, in micro-batches, with balanced sampling,
// planned.
#include "tare/callback/mixing.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "learner/fixture.h"
#include "tare/base/error.h"
#include "tare/model/registry.h"
#include "tare/plan/plan.h"
#include "tare/transform/transform.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

class SaveEachStep final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "save_each_step"; }
  Action after_batch(FitContext& c) override {
    c.learner.save("mixed-" + std::to_string(c.step));
    return Action::proceed;
  }
};

std::vector<CallbackPtr> both() {
  return {std::make_shared<Mixup>(MixingOptions{.alpha = 0.4, .probability = 0.5}),
          std::make_shared<Cutmix>()};
}

Splits mixing_data() {
  const auto images = [](int64_t n, uint64_t s) {
    auto generator = at::detail::createCPUGenerator(s);
    const auto pixels = torch::empty({n, 1, 10, 10}).random_(0, 256, generator).to(torch::kByte);
    return transformed(tensor_dataset(pixels, torch::arange(n) % kClasses, {"a", "b", "c"}),
                       Transforms{Normalise{{0.5}, {0.25}}});
  };
  return {.train = images(40, 1), .valid = images(12, 2)};
}

std::unique_ptr<Learner> mixing_learner(LearnerOptions options, uint64_t seed = 1,
                                        const char* model = "convnet") {
  at::set_num_threads(1);
  torch::manual_seed(seed);
  ModelOptions of_model{
      .classes = kClasses, .sample_shape = {1, 10, 10}, .width = 4, .dropout = 0.3};
  if (model == std::string("mlp"))
    of_model = {.classes = kClasses, .sample_shape = {1, 10, 10}, .hidden = {16}};
  return std::make_unique<Learner>(models::make(model, of_model), mixing_data(),
                                   std::move(options));
}

LearnerOptions mixing_options(const TempDir& folder) {
  LearnerOptions options = quiet(folder);
  options.batch = 8;
  options.workers = 0;
  options.callbacks = both();
  return options;
}

TEST(MixedFit, ResumedAtAnyStepEqualsTheStraightRunBitForBit) {
  const TempDir folder;
  auto straight = mixing_learner(mixing_options(folder));
  const auto whole = straight->fit(2, {.callbacks = {std::make_shared<SaveEachStep>()}});
  ASSERT_EQ(whole.steps, 10);
  for (int64_t step = 1; step < whole.steps; ++step) {
    auto fresh = mixing_learner(mixing_options(folder), 77);
    ASSERT_TRUE(fresh->load("mixed-" + std::to_string(step)).resumable) << step;
    const FitResult rest = fresh->resume();
    EXPECT_TRUE(torch::equal(flat(fresh->model()), flat(straight->model()))) << step;
    EXPECT_EQ(rest.epochs.back().train_loss, whole.epochs.back().train_loss) << step;
  }
}

TEST(MixedFit, DependsOnTheSeedAndDiffersFromOneWithoutMixing) {
  const TempDir folder;
  const auto weights = [&](uint64_t seed, bool mixes) {
    LearnerOptions options = mixing_options(folder);
    if (!mixes) options.callbacks = {};
    auto learner = mixing_learner(std::move(options));
    torch::manual_seed(seed);
    learner->fit(1);
    return flat(learner->model());
  };
  EXPECT_TRUE(torch::equal(weights(3, true), weights(3, true)));
  EXPECT_FALSE(torch::equal(weights(3, true), weights(4, true)));
  EXPECT_FALSE(torch::equal(weights(3, true), weights(3, false)));
}

TEST(MixedFit, MicroBatchesGiveTheLossOfTheBatch) {
  const TempDir folder;
  const auto loss_and_weights = [&](int64_t micro_batch) {
    LearnerOptions options = mixing_options(folder);
    options.micro_batch = micro_batch;
    auto learner = mixing_learner(std::move(options), 1, "mlp");  // no batch norm, no dropout
    const double loss = learner->fit(2, {.lr = 1e-3}).epochs.back().train_loss;
    return std::pair(loss, flat(learner->model()));
  };
  constexpr double kSummedInParts = 1e-5;  // sums of float32 in another order
  const auto [loss, weights] = loss_and_weights(8);
  const auto [loss_of_parts, weights_of_parts] = loss_and_weights(3);
  EXPECT_NEAR(loss, loss_of_parts, kSummedInParts);
  EXPECT_LT((weights - weights_of_parts).abs().max().item<double>(), 1e-3);  // Adam's steps
}

TEST(MixedFit, TakesBalancedSamplesAndWeightedClasses) {
  const TempDir folder;
  LearnerOptions options = mixing_options(folder);
  options.sampling = "balanced";
  options.loss = {"cross_entropy",
                  CrossEntropyOptions{.label_smoothing = 0.1, .class_weights = {1, 2, 3}}};
  auto learner = mixing_learner(std::move(options));
  const FitResult fit = learner->fit(2);
  EXPECT_TRUE(std::isfinite(fit.epochs.back().train_loss));
  EXPECT_TRUE(std::isfinite(fit.epochs.back().valid_loss));
}

TEST(MixedFit, IsPlannedToTheByte) {
  const TempDir folder;
  for (const int64_t micro_batch : {8, 3}) {
    for (const char* name : {"mixup", "cutmix", "both"}) {
      LearnerOptions options = mixing_options(folder);
      options.micro_batch = micro_batch;
      if (name == std::string("mixup")) options.callbacks.pop_back();
      if (name == std::string("cutmix")) options.callbacks.erase(options.callbacks.begin());
      auto learner = mixing_learner(std::move(options));
      const MemoryPlan plan = learner->plan({.advice = false});
      ASSERT_TRUE(plan.known()) << plan.reason;
      const memory::PeakScope scope(c10::kCPU);
      learner->fit(1);
      EXPECT_EQ(plan.peak_bytes, scope.peak_above_start_bytes()) << name << ' ' << plan.str();
      EXPECT_EQ(plan.categories.total(), plan.peak_bytes) << name;
    }
  }
}

TEST(MixedFit, RefusesALossThatTakesNoMixedLabels) {
  const TempDir folder;
  LearnerOptions options = mixing_options(folder);
  options.loss = "nll";
  auto learner = mixing_learner(std::move(options));
  try {
    learner->fit(1);
    FAIL() << "nll took probabilities";
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("int64"));
  }
}

}  // namespace
}  // namespace tare::testing
