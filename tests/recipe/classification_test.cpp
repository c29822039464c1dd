// Tests the confusion matrix of a classifier, and what a report shows of the worst samples.
#include "tare/recipe/classification.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "tare/base/base64.h"
#include "tare/data/digits.h"
#include "tare/recipe/sample_view.h"
#include "tare/recipe/worst_rows.h"
#include "tare/train/options.h"
#include "tare/transform/image.h"

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

TEST(Classification, TakesOneProbabilityForTwoClasses) {
  const Predictions one{.outputs = at::tensor({0.9F, 0.1F, 0.6F}).view({3, 1}),
                        .targets = at::tensor({1, 0, 0}, at::kLong),
                        .losses = at::tensor({0.1F, 0.1F, 0.9F})};
  const auto result = classification_of(one, {"no", "yes"});
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->counts, ElementsAre(ElementsAre(1, 1), ElementsAre(0, 1)));
  EXPECT_EQ(result->worst[0].predicted, "yes");
  EXPECT_NEAR(result->worst[0].probability, 0.6, 1e-6);
  EXPECT_EQ(result->worst[2].label, "no");
  EXPECT_NEAR(result->worst[2].probability, 0.9, 1e-6);
}

TEST(Classification, CountsEachOfSeveralLabels) {
  const Predictions several{
      .outputs = at::tensor({0.9F, 0.2F, 0.6F, 0.7F, 0.1F, 0.4F}).view({3, 2}),
      .targets = at::tensor({1.0F, 0.0F, 0.0F, 1.0F, 0.0F, 1.0F}).view({3, 2}),
      .losses = at::tensor({0.1F, 0.5F, 0.9F})};
  const auto result = classification_of(several, {"red", "small"});
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->counts, ElementsAre());
  ASSERT_EQ(result->label_counts.size(), 2U);
  const auto counts = [&](size_t label) {
    const LabelCounts& c = result->label_counts[label];
    return std::vector{c.true_positives, c.false_positives, c.false_negatives, c.true_negatives};
  };
  EXPECT_THAT(counts(0), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(counts(1), ElementsAre(1, 0, 1, 1));
  ASSERT_EQ(result->worst.size(), 3U);
  EXPECT_EQ(result->worst[0].index, 2);
  EXPECT_EQ(result->worst[0].label, "small");
  EXPECT_EQ(result->worst[0].predicted, "(none)");
  EXPECT_THAT(result->worst[0].probabilities,
              ElementsAre(::testing::DoubleNear(0.1, 1e-6), ::testing::DoubleNear(0.4, 1e-6)));
  EXPECT_EQ(result->worst[1].predicted, "red, small");
  EXPECT_EQ(result->worst[2].label, "red");
}

TEST(Classification, CountsOneLabelThatASampleHasOrLacks) {
  const auto result = classification_of({.outputs = at::tensor({0.9F, 0.2F}).view({2, 1}),
                                         .targets = at::tensor({1.0F, 1.0F}).view({2, 1})},
                                        {"red"});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->label_counts.at(0).false_negatives, 1);
  EXPECT_TRUE(result->worst.empty()) << "without losses";
}

TEST(Classification, IsNoneOfOtherOutputs) {
  EXPECT_FALSE(classification_of(three(), {"only"}).has_value());
  EXPECT_FALSE(classification_of(three(), {"a", "b", "c"}).has_value());
  Predictions regression = three();
  regression.targets = at::tensor({0.5F, 0.5F, 0.5F});
  EXPECT_FALSE(classification_of(regression, {"a", "b"}).has_value());
}

TEST(Classification, HasNoWorstSamplesWithoutLosses) {
  Predictions without = three();
  without.losses = at::Tensor();
  const auto result = classification_of(without, {"cat", "dog"});
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->counts, ElementsAre(ElementsAre(1, 1), ElementsAre(0, 0)));
  EXPECT_TRUE(result->worst.empty());
}

std::string picture_of(const Dataset& data, int64_t index) {
  return view_of(data, index, Tokens::none).picture;
}

/// The pixels of a PNG file in base64.
at::Tensor decoded(const std::string& picture) {
  const std::string png = bytes_of_base64(picture).value();
  return decode_png(std::as_bytes(std::span(png)), "picture");
}

TEST(SampleView, IsThePictureBeforeItWasNormalised) {
  const at::Tensor images = generate_digits({.count = 4, .size = 12}).images;
  const DatasetPtr data = tensor_dataset(images, at::arange(4));
  const DatasetPtr changed = transformed(data, Transforms{Normalise{{0.13}, {0.31}}, Shift{3}});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(at::equal(decoded(picture_of(*data, i)), images[i]));
    EXPECT_EQ(picture_of(*data, i), picture_of(*changed, i)) << "no random transform either";
  }
}

TEST(SampleView, IsSmallAndInRange) {
  const at::Tensor picture = decoded(
      picture_of(*tensor_dataset(at::linspace(-5, 7, 3 * 200 * 100).view({1, 3, 200, 100})), 0));
  EXPECT_EQ(picture.sizes(), (std::vector<int64_t>{3, 64, 32}));
  EXPECT_EQ(picture.min().item<int64_t>(), 0);
  EXPECT_EQ(picture.max().item<int64_t>(), 255);
}

TEST(SampleView, HasNoPictureOfFeaturesTokensAndOtherChannels) {
  for (const auto& shape : {std::vector<int64_t>{2, 5}, std::vector<int64_t>{2, 4, 8, 8}})
    EXPECT_EQ(picture_of(*tensor_dataset(at::ones(shape)), 0), "");
}

TEST(SampleView, HasTheTextOfTokens) {
  const at::Tensor bytes = at::tensor({'a', '\n', '<', 0, 0}, at::kLong).view({1, 5});
  const auto text_of = [](const DatasetPtr& data, Tokens tokens) {
    return view_of(*data, 0, tokens).text;
  };
  EXPECT_EQ(text_of(tensor_dataset(bytes), Tokens::bytes), R"(a\n<)");
  EXPECT_EQ(text_of(tensor_dataset(bytes), Tokens::none), "");
  const at::Tensor tokens = at::tensor({2, 0, 1}, at::kLong).view({1, 3});
  const DatasetPtr windows = tensor_dataset(tokens, tokens, {"o", "p", "t"});
  EXPECT_EQ(text_of(windows, Tokens::vocabulary), "top");
  const at::Tensor longer = at::ones({1, 500}, at::kLong).mul('x');
  EXPECT_LE(text_of(tensor_dataset(longer), Tokens::bytes).size(), kTextBytes + 3);
}

TEST(WorstRows, AreTheHighestLossesOfAnySamples) {
  const DatasetPtr data = tensor_dataset(at::ones({3, 2}));
  const auto of = [&](Predictions predictions) {
    predictions.losses = at::tensor({0.5F, 2.0F, 1.0F});
    return worst_rows_of(predictions, *data, Tokens::none);
  };
  const auto losses = of({});
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[0].name, "sample 1");
  EXPECT_EQ(losses[0].loss, 2);
  EXPECT_TRUE(std::isnan(losses[0].target));
  const auto numbers = of({.outputs = at::tensor({1.0F, 2.0F, 3.0F}).view({3, 1}),
                           .targets = at::tensor({4.0F, 5.0F, 6.0F})});
  EXPECT_EQ(numbers[1].name, "sample 2");
  EXPECT_EQ(numbers[1].target, 6);
  EXPECT_EQ(numbers[1].predicted, 3);
  EXPECT_TRUE(worst_rows_of({}, *data, Tokens::none).empty()) << "without losses";
}

}  // namespace
}  // namespace tare::testing
