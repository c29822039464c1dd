// Fits whose samples are drawn by weight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "learner/fail_at.h"
#include "learner/fixture.h"
#include "learner/state.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

/// Counts the labels that a fit trains on.
struct Labels final : Callback {
  [[nodiscard]] std::string name() const override { return "labels"; }
  Action before_batch(FitContext& c) override {
    const at::Tensor target = c.data.target().cpu();
    for (int64_t i = 0; i < target.size(0); ++i) ++counts[target[i].item<int64_t>()];
    return Action::proceed;
  }
  std::map<int64_t, int64_t> counts;
};

/// 80 samples of class 0, eight of class 1 and two of class 2.
Splits unbalanced() {
  auto target = torch::zeros({90}, torch::kLong);
  target.slice(0, 80, 88).fill_(1);
  target.slice(0, 88).fill_(2);
  return {.train = tensor_dataset(get_all(*points(90, 11)).input(), target),
          .valid = points(30, 2)};
}

class SamplingOfAFit : public ::testing::Test {
 protected:
  [[nodiscard]] LearnerOptions options() const { return quiet(folder_); }
  [[nodiscard]] std::string refusal(const Splits& data, const LearnerOptions& options) const {
    Learner learner(make_net(), data, options);
    try {
      learner.fit(1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  TempDir folder_;
};

TEST_F(SamplingOfAFit, BalancesTheClasses) {
  const auto labels = std::make_shared<Labels>();
  LearnerOptions balanced = options();
  balanced.sampling = "balanced";
  Learner learner(make_net(), unbalanced(), balanced);
  const FitResult result = learner.fit(2, {.callbacks = {labels}});
  EXPECT_EQ(result.epochs[0].samples, 90);
  for (const int64_t label : {0, 1, 2})
    EXPECT_NEAR(static_cast<double>(labels->counts[label]), 60, 2) << label;
}

TEST_F(SamplingOfAFit, NeverDrawsASampleOfWeightZero) {
  const auto labels = std::make_shared<Labels>();
  LearnerOptions weighted = options();
  weighted.sample_weights.assign(90, 0);
  for (size_t i = 80; i < 90; ++i) weighted.sample_weights[i] = 1;
  Learner learner(make_net(), unbalanced(), weighted);
  learner.fit(1, {.callbacks = {labels}});
  EXPECT_EQ(labels->counts[0], 0);
  EXPECT_EQ(labels->counts[1], 72);
  EXPECT_EQ(labels->counts[2], 18);
}

TEST_F(SamplingOfAFit, ContinuesAfterAnErrorAsUndisturbed) {
  LearnerOptions balanced = options();
  balanced.sampling = "balanced";
  Learner undisturbed(make_net(), unbalanced(), balanced);
  torch::manual_seed(4);
  undisturbed.fit(2);
  Learner failing(make_net(), unbalanced(), balanced);
  torch::manual_seed(4);
  EXPECT_THROW(failing.fit(2, {.callbacks = {std::make_shared<FailAt>(3)}}), std::runtime_error);
  failing.save("inside");
  Learner resumed(make_net(2), unbalanced(), balanced);
  resumed.load("inside");
  resumed.resume();
  EXPECT_TRUE(capture(resumed) == capture(undisturbed));

  LearnerOptions other = options();  // whose epochs have other samples
  Learner refused(make_net(), unbalanced(), other);
  refused.load("inside");
  EXPECT_THAT([&] { refused.resume(); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("sampling balanced")));
}

TEST_F(SamplingOfAFit, ThatDoesNotFitTheDataIsRefused) {
  LearnerOptions balanced = options();
  balanced.sampling = "balanced";
  balanced.loss = "mse";
  balanced.metrics = {};
  const Splits values{
      .train = tensor_dataset(torch::rand({40, kFeatures}), torch::rand({40, kClasses}))};
  EXPECT_THAT(refusal(values, balanced), ::testing::HasSubstr("class labels"));
  LearnerOptions both = options();
  both.sampling = "balanced";
  both.sample_weights.assign(90, 1);
  EXPECT_THAT(refusal(unbalanced(), both), ::testing::HasSubstr("one of them"));
  LearnerOptions few = options();
  few.sample_weights = {1, 2};
  EXPECT_THAT(refusal(unbalanced(), few), ::testing::HasSubstr("90 numbers"));
}

}  // namespace
}  // namespace tare::testing
