// mixup and cutmix: their batches against torchvision's, what they draw, and what they refuse.
#include "tare/callback/mixing.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "callback/fake_learner.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

// A product is rounded once more here, or once less.
constexpr double kMixRounding = 1e-6;

at::Tensor batch_of_json(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble)
      .to(at::kFloat)
      .view({4, 3, 6, 8});
}

TEST(Mixing, GivesTheBatchesOfTorchvision) {
  const auto golden =
      nlohmann::json::parse(io::read_text(std::string(TARE_GOLDEN) + "/augmentations.json"));
  const at::Tensor batch = batch_of_json(golden["batch"]);
  ASSERT_EQ(golden["mixes"].size(), 2U);
  for (const auto& one : golden["mixes"]) {
    Mix mix{.share = one["share"]};
    const bool cuts = one["kind"] == "cutmix";
    if (cuts) {
      mix.left = one["box"][0];
      mix.top = one["box"][1];
      mix.right = one["box"][2];
      mix.bottom = one["box"][3];
    }
    const at::Tensor got = cuts ? Cutmix().mixed(batch, mix) : Mixup().mixed(batch, mix);
    EXPECT_LT((got - batch_of_json(one["values"])).abs().max().item<double>(), kMixRounding)
        << one["kind"];
  }
}

/// Mixes one batch as a fit does, with labels 0, 1, 2, 0, 1, ...
Batch mixed_batch(BatchMixing& mixing, const at::Tensor& input, uint64_t seed) {
  FakeLearner learner;
  FitContext context{.learner = learner};
  at::manual_seed(seed);
  mixing.before_fit(context);
  context.data = Batch(input, at::arange(input.size(0)).remainder(3));
  mixing.before_batch(context);
  return context.data;
}

TEST(Mixing, MixesTargetsAsItMixesSamples) {
  const at::Tensor input = at::rand({5, 1, 9, 9});
  const at::Tensor before = input.roll(1, 0);
  Mixup mixup({.alpha = 1}, 3);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Batch batch = mixed_batch(mixup, input, seed);
    ASSERT_EQ(batch.target().sizes(), at::IntArrayRef({5, 3}));
    EXPECT_NEAR(batch.target().sum().item<double>(), 5, 1e-5);
    // Sample 1 has class 1, and sample 0 before it class 0.
    const double share = batch.target()[1][1].item<double>();
    EXPECT_NEAR(batch.target()[1][0].item<double>(), 1 - share, 1e-6);
    const at::Tensor expected = input * share + before * (1 - share);
    EXPECT_LT((batch.input() - expected).abs().max().item<double>(), kMixRounding);
  }
}

TEST(Mixing, TheTargetsOfCutmixHaveTheAreaOfTheBox) {
  const at::Tensor input = at::arange(5).to(at::kFloat).view({5, 1, 1, 1}).expand({5, 1, 12, 10});
  Cutmix cutmix({}, 3);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Batch batch = mixed_batch(cutmix, input.contiguous(), seed);
    const double own = batch.input()[1].eq(1).to(at::kFloat).mean().item<double>();
    EXPECT_NEAR(batch.input()[1].eq(0).to(at::kFloat).mean().item<double>(), 1 - own, 1e-6);
    EXPECT_NEAR(batch.target()[1][1].item<double>(), own, 1e-6);
  }
}

TEST(Mixing, SharesHaveTheBetaDistribution) {
  // The mean of Beta(a, a) is 1/2, and its variance 1 / (4 (2 a + 1)).
  for (const double alpha : {0.1, 0.4, 1.0, 3.0}) {
    Mixup mixup({.alpha = alpha}, 3);
    double sum = 0, squares = 0;
    constexpr int kDraws = 4000;
    const at::Tensor input = at::full({3, 2}, 1.0, at::kFloat);
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      const double share = mixed_batch(mixup, input, seed).target()[1][1].item<double>();
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.02) << alpha;
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.01) << alpha;
  }
}

TEST(Mixing, LeavesItsShareOfTheBatchesUnmixed) {
  const at::Tensor input = at::rand({4, 1, 8, 8});
  for (const bool cuts : {false, true}) {
    Mixup mixup({.alpha = 1, .probability = 0.25}, 3);
    Cutmix cutmix({.alpha = 1, .probability = 0.25}, 3);
    int mixed = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      const Batch batch =
          mixed_batch(cuts ? static_cast<BatchMixing&>(cutmix) : mixup, input, seed);
      if (!at::equal(batch.input(), input)) ++mixed;
    }
    EXPECT_GT(mixed, cuts ? 50 : 70);
    EXPECT_LT(mixed, 130);
  }
}

TEST(Mixing, MixesWhatTheOtherOneHasMixed) {
  FakeLearner learner;
  FitContext context{.learner = learner};
  Mixup mixup({.alpha = 1}, 3);
  Cutmix cutmix({}, 3);
  mixup.before_fit(context);
  cutmix.before_fit(context);
  context.data = Batch(at::rand({6, 1, 8, 8}), at::arange(6).remainder(3));
  mixup.before_batch(context);
  cutmix.before_batch(context);
  EXPECT_EQ(context.data.target().sizes(), at::IntArrayRef({6, 3}));
  EXPECT_NEAR(context.data.target().sum().item<double>(), 6, 1e-5);
}

/// Returns what a callback says of a batch.
std::string mixing_refusal(BatchMixing&& mixing, const Batch& batch) {
  FakeLearner learner;
  FitContext context{.learner = learner};
  try {
    mixing.before_fit(context);
    context.data = batch;
    mixing.before_batch(context);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Mixing, RefusesWhatItCannotMix) {
  const at::Tensor input = at::rand({4, 1, 8, 8}), labels = at::arange(4).remainder(3);
  EXPECT_EQ(mixing_refusal(Mixup({}, 3), {input, labels}), "");
  EXPECT_THAT(mixing_refusal(Mixup(), {input, labels}), HasSubstr("number of classes"));
  EXPECT_THAT(mixing_refusal(Mixup({}, 2), {input, labels}), HasSubstr("0 to 1"));
  EXPECT_THAT(mixing_refusal(Mixup({}, 3), {input, labels.sub(100)}), HasSubstr("-100"));
  EXPECT_THAT(mixing_refusal(Mixup({}, 3), {input.to(at::kByte), labels}), HasSubstr("floating"));
  EXPECT_THAT(mixing_refusal(Cutmix({}, 3), {at::rand({4, 8}), labels}), HasSubstr("take mixup"));
  EXPECT_THAT(mixing_refusal(Mixup({}, 3), {input, at::rand({4})}), HasSubstr("class label"));
  EXPECT_THAT(mixing_refusal(Mixup({}, 3), Batch({{"a", input}, {"b", input}}, {{"c", labels}})),
              HasSubstr("one input"));
  EXPECT_THROW(Mixup({.alpha = 0}, 3), ConfigError);
  EXPECT_THROW(Cutmix({.probability = 1.5}, 3), ConfigError);
}

}  // namespace
}  // namespace tare::testing
