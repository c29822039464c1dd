#include "tare/recipe/classification.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tare/learner/options.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;

Predictions three() {
  return {.outputs = at::tensor({0.9F, 0.1F, 0.4F, 0.6F, 0.3F, 0.7F}).view({3, 2}),
          .targets = at::tensor({0, 0, -100}, at::kLong),
          .losses = at::tensor({0.1F, 0.9F, 5.0F})};
}

TEST(Classification, CountsByLabelAndPrediction) {
  const auto result = classification_of(three(), {"cat", "dog"});
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->counts, ElementsAre(ElementsAre(1, 1), ElementsAre(0, 0)));
  ASSERT_EQ(result->worst.size(), 2U) << "the target -100 is ignored";
  EXPECT_EQ(result->worst[0].index, 1);
  EXPECT_EQ(result->worst[0].label, "cat");
  EXPECT_EQ(result->worst[0].predicted, "dog");
  EXPECT_NEAR(result->worst[0].probability, 0.6, 1e-6);
  EXPECT_NEAR(result->worst[0].loss, 0.9, 1e-6);
}

TEST(Classification, IsNoneOfOtherOutputs) {
  EXPECT_FALSE(classification_of(three(), {"only"}).has_value());
  EXPECT_FALSE(classification_of(three(), {"a", "b", "c"}).has_value());
  Predictions regression = three();
  regression.targets = at::tensor({0.5F, 0.5F, 0.5F});
  EXPECT_FALSE(classification_of(regression, {"a", "b"}).has_value());
  Predictions without = three();
  without.losses = at::Tensor();
  EXPECT_FALSE(classification_of(without, {"a", "b"}).has_value());
}

}  // namespace
}  // namespace tare::testing
