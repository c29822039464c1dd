// Fits of so many steps, samples or minutes, and fine_tune().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "learner/fail_at.h"
#include "learner/fixture.h"
#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/callback/recorder.h"
#include "tare/optim/schedule.h"

namespace tare::testing {
namespace {

// 90 samples in batches of 16: six batches an epoch, the last of 10.
constexpr int64_t kInEpoch = 6;

/// Notes what the context says of the length of the fit.
struct Lengths final : Callback {
  [[nodiscard]] std::string name() const override { return "lengths"; }
  Action before_fit(FitContext& c) override {
    epochs = c.epochs;
    steps = c.steps;
    return Action::proceed;
  }
  Action after_validate(FitContext&) override {
    ++validations;
    return Action::proceed;
  }
  int64_t epochs = 0, steps = 0, validations = 0;
};

class DurationOfAFit : public ::testing::Test {
 protected:
  TempDir folder_;
};

TEST_F(DurationOfAFit, InStepsEndsInsideAnEpochAndClosesIt) {
  const auto lengths = std::make_shared<Lengths>();
  const auto recorder = std::make_shared<Recorder>();
  Learner learner(make_net(), split_points(), quiet(folder_));
  const FitResult result = learner.fit(
      {.steps = 8}, {.lr = 0.1, .schedule = {.kind = "linear"}, .callbacks = {lengths, recorder}});
  EXPECT_EQ(result.reason, StopReason::finished);
  EXPECT_EQ(result.steps, 8);
  ASSERT_EQ(result.epochs.size(), 2U);
  EXPECT_EQ(result.epochs[0].samples, 90);
  EXPECT_EQ(result.epochs[1].samples, 32);
  EXPECT_EQ(lengths->epochs, 2);
  EXPECT_EQ(lengths->steps, 8);
  EXPECT_EQ(lengths->validations, 2);
  EXPECT_FALSE(learner.can_resume());
  for (int64_t step = 0; step < 8; ++step)
    EXPECT_DOUBLE_EQ(recorder->steps()[static_cast<size_t>(step)].lr,
                     0.1 * (1 - static_cast<double>(step) / 8));
}

TEST_F(DurationOfAFit, InStepsOfWholeEpochsIsThatOfTheEpochs) {
  Learner by_steps(make_net(), split_points(), quiet(folder_));
  Learner by_epochs(make_net(), split_points(), quiet(folder_));
  torch::manual_seed(3);
  by_steps.fit({.steps = 2 * kInEpoch}, {.lr = 0.1});
  torch::manual_seed(3);
  by_epochs.fit({.epochs = 2}, {.lr = 0.1});
  EXPECT_TRUE(capture(by_steps) == capture(by_epochs));
  Learner plain(make_net(), split_points(), quiet(folder_));
  torch::manual_seed(3);
  plain.fit(2, {.lr = 0.1});
  EXPECT_TRUE(capture(plain) == capture(by_epochs));
}

TEST_F(DurationOfAFit, InSamplesEndsWithTheBatchThatReachesThem) {
  Learner learner(make_net(), split_points(), quiet(folder_));
  EXPECT_EQ(learner.fit({.samples = 90 + 17}).steps, kInEpoch + 2);
  EXPECT_EQ(learner.fit({.samples = 90}).steps, kInEpoch);
  EXPECT_EQ(learner.fit({.samples = 1}).steps, 1);
  LearnerOptions options = quiet(folder_);
  options.drop_last = true;  // 80 samples an epoch
  Learner dropping(make_net(), split_points(), options);
  EXPECT_EQ(dropping.fit({.samples = 90}).steps, 6);
}

TEST_F(DurationOfAFit, InMinutesEndsAfterTheBatchInWhichTheyAreOver) {
  const auto lengths = std::make_shared<Lengths>();
  Learner learner(make_net(), split_points(), quiet(folder_));
  const FitResult result = learner.fit({.minutes = 1e-9}, {.callbacks = {lengths}});
  EXPECT_EQ(result.reason, StopReason::finished);
  EXPECT_EQ(result.steps, 1);
  EXPECT_EQ(result.epochs.size(), 1U);
  EXPECT_EQ(lengths->epochs, kMostEpochs);
  EXPECT_FALSE(learner.can_resume());
  // The clock cuts a fit of epochs short, whose schedule stays that of the epochs.
  const FitResult cut = learner.fit({.epochs = 5, .minutes = 1e-9},
                                    {.schedule = {.kind = "cosine"}, .callbacks = {lengths}});
  EXPECT_EQ(cut.steps, 1);
  EXPECT_EQ(lengths->steps, 5 * kInEpoch);
  // An hour is not over: the epochs end the fit.
  EXPECT_EQ(learner.fit({.epochs = 1, .minutes = 60}).steps, kInEpoch);
}

/// Takes longer in front of each epoch than a fit may take.
struct Slow final : Callback {
  static constexpr double kMinutes = 0.0005;
  [[nodiscard]] std::string name() const override { return "slow"; }
  Action before_epoch(FitContext&) override {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin <
           std::chrono::duration<double>(60 * kMinutes)) {
    }
    return Action::proceed;
  }
};

TEST_F(DurationOfAFit, InMinutesIsByTheClock) {
  Learner learner(make_net(), split_points(), quiet(folder_));
  EXPECT_EQ(
      learner.fit({.minutes = Slow::kMinutes}, {.callbacks = {std::make_shared<Slow>()}}).steps, 1);
}

TEST_F(DurationOfAFit, IsKeptByACheckpoint) {
  Learner undisturbed(make_net(), split_points(), quiet(folder_));
  torch::manual_seed(4);
  undisturbed.fit({.steps = 8}, {.lr = 0.1, .schedule = {.kind = "linear"}});

  Learner failing(make_net(), split_points(), quiet(folder_));
  torch::manual_seed(4);
  EXPECT_THROW(
      failing.fit(
          {.steps = 8, .minutes = 60},
          {.lr = 0.1, .schedule = {.kind = "linear"}, .callbacks = {std::make_shared<FailAt>(7)}}),
      std::runtime_error);
  failing.save("inside");
  Learner resumed(make_net(2), split_points(), quiet(folder_));
  ASSERT_TRUE(resumed.load("inside").resumable);
  const FitResult rest = resumed.resume();
  EXPECT_EQ(rest.steps, 1);
  EXPECT_EQ(rest.epochs.size(), 2U);
  EXPECT_TRUE(capture(resumed) == capture(undisturbed));
}

TEST_F(DurationOfAFit, ThatSaysNothingOrTooMuchIsRefused) {
  Learner learner(make_net(), split_points(), quiet(folder_));
  const auto refused = [&](const Duration& duration, const FitOptions& options) -> std::string {
    try {
      learner.fit(duration, options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused({}, {}), ::testing::HasSubstr("epochs, steps, samples or minutes"));
  EXPECT_THAT(refused({.epochs = 1, .steps = 2}, {}), ::testing::HasSubstr("one of them"));
  EXPECT_THAT(refused({.steps = -1}, {}), ::testing::HasSubstr(">= 0"));
  EXPECT_THAT(refused({.epochs = 1, .minutes = std::nan("")}, {}), ::testing::HasSubstr("minutes"));
  EXPECT_THAT(refused({.epochs = kMostEpochs + 1}, {}), ::testing::HasSubstr("1,000,000,000"));
  EXPECT_THAT(refused({.minutes = 5}, {.schedule = {.kind = "cosine"}}),
              ::testing::HasSubstr("schedule: constant"));
  EXPECT_TRUE(learner.history().empty());
}

TEST_F(DurationOfAFit, FineTuneTrainsTheHeadAndThenAll) {
  const auto recorder = std::make_shared<Recorder>();
  Learner learner(make_net(), split_points(), quiet(folder_));
  const at::Tensor first = learner.model().state().front().tensor.detach().clone();
  const FineTuneResult result =
      learner.fine_tune(2, {.frozen_epochs = 1, .lr = 0.02, .callbacks = {recorder}});
  EXPECT_EQ(result.frozen.steps, kInEpoch);
  EXPECT_EQ(result.all.steps, 2 * kInEpoch);
  EXPECT_FALSE(torch::equal(first, learner.model().state().front().tensor)) << "never unfrozen";
  // The peak of the first fit is the rate, that of the second its half.
  double peak = 0, second = 0;
  for (size_t i = 0; i < recorder->steps().size(); ++i) {
    double& highest = i < static_cast<size_t>(kInEpoch) ? peak : second;
    highest = std::max(highest, recorder->steps()[i].lr);
  }
  EXPECT_NEAR(peak, 0.02, 1e-12);
  EXPECT_NEAR(second, 0.01, 1e-12);
  EXPECT_THROW(learner.fine_tune(0), ConfigError);
  EXPECT_THROW(learner.fine_tune(1, {.frozen_epochs = 0}), ConfigError);
}

TEST_F(DurationOfAFit, FineTuneEndsWhereItsFirstFitIsEnded) {
  struct Stop final : Callback {
    [[nodiscard]] std::string name() const override { return "stop"; }
    Action after_batch(FitContext&) override { return Action::stop_fit; }
  };
  Learner learner(make_net(), split_points(), quiet(folder_));
  const auto result =
      learner.fine_tune(2, {.frozen_epochs = 3, .callbacks = {std::make_shared<Stop>()}});
  EXPECT_EQ(result.frozen.reason, StopReason::callback);
  EXPECT_TRUE(result.all.epochs.empty());
}

}  // namespace
}  // namespace tare::testing
