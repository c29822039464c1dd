// Tests the values that the Recorder keeps of each step.
#include "tare/callback/recorder.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "callback/fake_learner.h"

namespace tare::testing {
namespace {

TEST(Recorder, KeepsEveryStepAndTheSmoothedLoss) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  Recorder recorder;
  EXPECT_TRUE(std::isnan(recorder.smooth_loss()));
  double average = 0;
  for (int i = 1; i <= 100; ++i) {
    c.loss = at::full({}, 1.0F / static_cast<float>(i));
    c.lr = i;
    recorder.after_batch(c);
    average = 0.98 * average + 0.02 * (1.0F / static_cast<float>(i));
  }
  ASSERT_EQ(recorder.steps().size(), 100U);
  EXPECT_FLOAT_EQ(static_cast<float>(recorder.steps()[9].loss), 0.1F);
  EXPECT_EQ(recorder.steps()[9].lr, 10);
  EXPECT_NEAR(recorder.smooth_loss(), average / (1 - std::pow(0.98, 100)), 1e-12);
  recorder.clear();
  EXPECT_TRUE(recorder.steps().empty());
}

}  // namespace
}  // namespace tare::testing
