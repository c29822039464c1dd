// Weights as E4M3: rounding, scales, what is refused.
#include "tare/model/coded_weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "tare/base/error.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

at::Tensor values(const at::Tensor& weight, c10::ScalarType type = c10::kFloat) {
  return dequantise(quantise(weight, "w"), type);
}

TEST(Fp8, RoundsAsLibTorchDoesToTheNearestWithTiesToEven) {
  const auto weight =
      torch::tensor({{448.0F, 17.0F, 19.0F, 18.0F, -0.1F, 0x1p-9F, 0x1p-10F, 0.0F}});
  const CodedWeight held = quantise(weight, "w");
  EXPECT_EQ(held.scale.item<float>(), 1);
  EXPECT_TRUE(torch::equal(held.values.view(torch::kByte),
                           weight.to(torch::kFloat8_e4m3fn).view(torch::kByte)));
  const auto expected =
      torch::tensor({{448.0F, 16.0F, 20.0F, 18.0F, -0.1015625F, 0x1p-9F, 0.0F, 0.0F}});
  EXPECT_TRUE(torch::equal(dequantise(held, torch::kFloat), expected));
}

TEST(Fp8, ScalesEachRowByTheSmallestPowerOfTwoThatTakesItIn) {
  const auto weight = torch::tensor({{464.0F, 1.0F}, {464.5F, 1.0F}, {0.875F, 0.0F}, {0.0F, 0.0F}});
  const CodedWeight held = quantise(weight, "w");
  EXPECT_TRUE(torch::equal(held.scale, torch::tensor({1.0F, 2.0F, 0x1p-9F, 1.0F})));
  EXPECT_EQ(held.scale.sizes(), (std::vector<int64_t>{4}));
  EXPECT_FALSE(held.values.to(torch::kFloat).isnan().any().item<bool>()) << "nothing saturates";
}

TEST(Fp8, RoundedAgainHasTheScalesAndValuesThatItHad) {
  torch::manual_seed(5);
  const auto weight = torch::cat(
      {torch::randn({2000, 3}), torch::tensor({{224.5F, 1.0F, 0.0F}, {232.5F, 1.0F, 0.0F}})});
  const CodedWeight once = quantise(weight, "w");
  const CodedWeight twice = quantise(dequantise(once, torch::kFloat), "w");
  EXPECT_TRUE(torch::equal(once.scale, twice.scale));
  EXPECT_TRUE(torch::equal(once.values.view(torch::kByte), twice.values.view(torch::kByte)));
}

TEST(Fp8, IsOffByASixteenthAtMostWhereValuesAreNormal) {
  torch::manual_seed(3);
  const auto weight =
      torch::randn({64, 9, 3, 3}) * torch::logspace(-30, 30, 64).view({64, 1, 1, 1});
  const CodedWeight held = quantise(weight, "w");
  const auto scale = held.scale.view({64, 1, 1, 1});
  const auto error = (dequantise(held, torch::kFloat) - weight).abs();
  const auto bound =
      torch::where(weight.abs() >= scale * 0x1p-6, weight.abs() * 0x1p-4, scale * 0x1p-10);
  EXPECT_TRUE((error <= bound).all().item<bool>());
  EXPECT_GT(error.sum().item<double>(), 0);
}

TEST(Fp8, TakesTheSmallestAndTheLargestValues) {
  const auto weight = torch::tensor({{0x1p127F, -0x1.8p126F}, {0x1p-126F, 0x1p-149F}});
  const auto back = values(weight);
  EXPECT_EQ(back[0][0].item<float>(), 0x1p127F);
  EXPECT_EQ(back[0][1].item<float>(), -0x1.8p126F);
  EXPECT_EQ(back[1][0].item<float>(), 0x1p-126F);
  EXPECT_EQ(back[1][1].item<float>(), 0);
}

TEST(Fp8, RoundingAgainChangesNothingInAnyType) {
  torch::manual_seed(4);
  const auto weight = torch::randn({33, 65}) * torch::logspace(-8, 8, 33).view({33, 1});
  const auto once = values(weight);
  EXPECT_TRUE(torch::equal(values(once), once));
  EXPECT_TRUE(torch::equal(values(weight, torch::kBFloat16).to(torch::kFloat), once))
      << "bfloat16 holds the product";
  EXPECT_TRUE(torch::equal(values(once.to(torch::kBFloat16)), once));
}

TEST(Fp8, KeepsTheStridesOfRowsAndMakesOthersContiguous) {
  torch::manual_seed(5);
  const auto plain = torch::randn({4, 3, 5, 5});
  const auto last = plain.contiguous(torch::MemoryFormat::ChannelsLast);
  const CodedWeight held = quantise(last, "w");
  EXPECT_EQ(held.values.strides(), last.strides());
  EXPECT_EQ(dequantise(held, torch::kFloat).strides(), last.strides());
  EXPECT_TRUE(torch::equal(dequantise(held, torch::kFloat), values(plain)));
  const auto turned = torch::randn({6, 4}).t();
  EXPECT_TRUE(torch::equal(values(turned), values(turned.contiguous())));
}

TEST(Fp8, RefusesWhatIsNotFiniteAndNamesTheWeight) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), 0x1.8p127F}) {
    auto weight = torch::ones({3, 3});
    weight[1][2] = bad;
    try {
      (void)quantise(weight, "layer1.weight");
      FAIL() << bad;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'layer1.weight' has a value that is NaN"));
    }
  }
}

TEST(Fp8, FitsMatricesOfTheShorterTypes) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf})
    EXPECT_TRUE(fits_codes(torch::ones({2, 2}, type)));
  EXPECT_FALSE(fits_codes(torch::ones({2, 2}, torch::kDouble)));
  EXPECT_FALSE(fits_codes(torch::ones({2, 2}, torch::kLong)));
  EXPECT_FALSE(fits_codes(torch::ones({2, 2}).to(torch::kFloat8_e4m3fn)));
  EXPECT_FALSE(fits_codes(torch::ones({4})));
  EXPECT_FALSE(fits_codes(torch::ones({0, 4})));
}

// ---- in files

std::vector<NamedTensor> stored() {
  const CodedWeight held = quantise(torch::randn({3, 4}), "a");
  return {{"a", held.values}, {"a_scale", held.scale}, {"b", torch::ones({3})}};
}

std::string refusal(const std::vector<NamedTensor>& tensors) {
  try {
    (void)scales_in(tensors, "test", "file");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ScalesIn, RefusesScalesThatDoNotBelong) {
  EXPECT_EQ(refusal(stored()), "accepted");
  const auto with_scale = [](const at::Tensor& scale) {
    auto tensors = stored();
    tensors[1].tensor = scale;
    return refusal(tensors);
  };
  auto missing = stored();
  missing.erase(missing.begin() + 1);
  EXPECT_THAT(refusal(missing), HasSubstr("a: is float8 without the scale of its rows"));
  for (const auto& shape :
       {torch::ones({2}), torch::ones({3, 1}), torch::ones({3}, torch::kDouble)})
    EXPECT_THAT(with_scale(shape), HasSubstr("is not the scale of its weight's rows"));
  for (const float bad :
       {std::nanf(""), std::numeric_limits<float>::infinity(), 0.0F, -1.0F, 1e37F})
    EXPECT_THAT(with_scale(torch::tensor({1.0F, bad, 1.0F})), HasSubstr("is not above 0"));
  auto nan = stored();
  nan[0].tensor = torch::full({3, 4}, 0x7f, torch::kByte).view(torch::kFloat8_e4m3fn);
  EXPECT_THAT(refusal(nan), HasSubstr("has a NaN"));
  auto vector = stored();
  vector[0].tensor = torch::ones({3}).to(torch::kFloat8_e4m3fn);
  EXPECT_THAT(refusal(vector), HasSubstr("is of codes and no matrix"));
}

TEST(AsFp8, QuantisesMatricesOfParametersAndNothingElse) {
  torch::manual_seed(6);
  const std::vector<NamedTensor> tensors{{"w", torch::randn({5, 7})},
                                         {"bias", torch::randn({5}).to(torch::kBFloat16)},
                                         {"table", torch::randn({4, 4})}};
  const auto packed = as_fp8(tensors, {"w", "bias"});
  ASSERT_EQ(packed.size(), 4);
  EXPECT_EQ(packed[0].tensor.scalar_type(), torch::kFloat8_e4m3fn);
  EXPECT_EQ(packed[1].name, "w_scale");
  EXPECT_EQ(packed[2].tensor.scalar_type(), torch::kFloat) << "nothing computes with two types";
  EXPECT_TRUE(packed[3].tensor.is_same(tensors[2].tensor)) << "a buffer";
  const auto back = dequantised(packed, "test", "file");
  ASSERT_EQ(back.size(), 3);
  EXPECT_TRUE(torch::equal(back[0].tensor, values(tensors[0].tensor)));
  const auto again = as_fp8(packed, {"w", "bias"});
  ASSERT_EQ(again.size(), 4) << "what is E4M3 stays";
  EXPECT_TRUE(again[0].tensor.is_same(packed[0].tensor));
  EXPECT_THROW((void)as_fp8({{"w", torch::ones({2, 2})}, {"w_scale", torch::ones({1})}}, {"w"}),
               ConfigError);
}

// ---- held by a model

Model resnet() {
  torch::manual_seed(1);
  return models::make("resnet9", {.classes = 3, .sample_shape = {1, 12, 12}, .width = 4});
}

void freeze(Model& model, const std::string& part) {
  for (const auto& p : model.parameters())
    if (p.name.starts_with(part)) at::Tensor(p.tensor).set_requires_grad(false);
}

/// The model with frozen matrices rounded in plain float32.
Model rounded(const Model& model) {
  Model plain = resnet();
  (void)load_stored(plain, computed_state(model), true, "test", "");
  return plain;
}

TEST(Int8, IsOffByHalfAScaleAtMost) {
  torch::manual_seed(2);
  torch::Tensor weight =
      torch::randn({5, 3, 4}) * torch::tensor({1e-3F, 1.0F, 40.0F, 1e30F, 0.0F}).view({5, 1, 1});
  const CodedWeight held = quantise_int8(weight, "w");
  EXPECT_EQ(held.values.scalar_type(), torch::kChar);
  for (int64_t row = 0; row < 4; ++row) {
    const double scale = held.scale[row].item<double>();
    EXPECT_NEAR(scale * 127 / weight[row].abs().max().item<double>(), 1, 1e-6);
    const torch::Tensor off = dequantise(held, torch::kFloat)[row].sub(weight[row]).abs();
    EXPECT_LE(off.max().item<double>(), 0.5001 * scale);
  }
  EXPECT_EQ(held.scale[4].item<float>(), 1);
  EXPECT_EQ(held.values.abs().max().item<int64_t>(), 127) << "-128 is not used";
  weight[0][0][0] = std::numeric_limits<float>::infinity();
  EXPECT_THROW((void)quantise_int8(weight, "w"), ConfigError);
}

TEST(AsInt8, StandsBesideItsScaleAndOtherIntegersStay) {
  const std::vector<NamedTensor> stored{{"w", torch::randn({3, 4})},
                                        {"codes", torch::ones({2, 2}, torch::kChar)},
                                        {"bias", torch::ones({3})}};
  const auto packed = as_int8(stored, {"w", "bias"});
  ASSERT_EQ(packed.size(), 4U);
  EXPECT_EQ(packed[1].name, "w_scale");
  EXPECT_EQ(coding_of(packed), "int8");
  EXPECT_EQ(coding_of(stored), "") << "an int8 tensor without a scale is no coded weight";
  const auto scales = scales_in(packed, "test", "a.tare");
  EXPECT_EQ(scales.size(), 1U);
  const auto plain = dequantised(packed, "test", "a.tare");
  ASSERT_EQ(plain.size(), 3U);
  EXPECT_LT(plain[0].tensor.sub(stored[0].tensor).abs().max().item<double>(), 0.02);
  EXPECT_TRUE(torch::equal(plain[1].tensor, stored[1].tensor));
}

TEST(As16Bits, RoundsMatricesAndRefusesWhatFloat16CannotHold) {
  const std::vector<NamedTensor> stored{{"w", torch::full({2, 2}, 1.0F / 3)},
                                        {"bias", torch::full({2}, 1.0F / 3)}};
  const auto halves = as_16_bits(stored, {"w", "bias"}, torch::kHalf);
  EXPECT_EQ(halves[0].tensor.scalar_type(), torch::kHalf);
  EXPECT_EQ(halves[1].tensor.scalar_type(), torch::kFloat);
  const std::vector<NamedTensor> large{{"w", torch::full({2, 2}, 1e5F)}};
  EXPECT_THROW((void)as_16_bits(large, {"w"}, torch::kHalf), ConfigError);
  EXPECT_EQ(as_16_bits(large, {"w"}, torch::kBFloat16)[0].tensor.scalar_type(), torch::kBFloat16);
}

TEST(HoldFrozen, HoldsTheFrozenMatricesOfBlocksAndComputesWithTheRoundedOnes) {
  Model model = resnet();
  freeze(model, "layer1");
  model.hold_frozen(true);
  for (const auto& p : model.parameters()) {
    const bool held = p.name.starts_with("layer1") && p.tensor.dim() >= 2;
    EXPECT_EQ(p.tensor.scalar_type() == torch::kFloat8_e4m3fn, held) << p.name;
  }
  const auto x = torch::randn({4, 1, 12, 12});
  model.train(false);
  Model plain = rounded(model);
  plain.train(false);
  EXPECT_TRUE(torch::equal(model.forward(x), plain.forward(x)));
  model.hold_frozen(false);
  EXPECT_TRUE(model.held().empty());
  EXPECT_TRUE(torch::equal(model.forward(x), plain.forward(x)));
  for (const auto& p : model.parameters()) EXPECT_EQ(p.tensor.scalar_type(), torch::kFloat);
}

TEST(HoldFrozen, GradientsThroughAFrozenBlockAreThoseOfPlainFloat32) {
  for (const bool recompute : {false, true}) {
    Model model = resnet();
    freeze(model, "layer");
    model.hold_frozen(true);
    Model plain = rounded(model);
    freeze(plain, "layer");
    if (recompute) model.set_recompute({"all"});
    const auto x = torch::randn({4, 1, 12, 12});
    for (Model* each : {&model, &plain}) each->forward(x).pow(2).sum().backward();
    ASSERT_EQ(model.parameters().size(), plain.parameters().size());
    int64_t compared = 0;
    for (size_t i = 0; i < model.parameters().size(); ++i) {
      const auto& mine = model.parameters()[i];
      const auto& theirs = plain.parameters()[i].tensor;
      ASSERT_EQ(mine.tensor.grad().defined(), theirs.grad().defined()) << mine.name;
      if (!theirs.grad().defined()) continue;
      EXPECT_TRUE(torch::equal(mine.tensor.grad(), theirs.grad())) << mine.name;
      ++compared;
    }
    EXPECT_GT(compared, 3) << "prep and head train";
  }
}

TEST(HoldFrozen, LeavesWhatLiesOutsideOfBlocks) {
  torch::manual_seed(2);
  Model model =
      models::make("gpt", {.classes = 8, .sample_shape = {4}, .width = 8, .layers = 2, .heads = 2});
  freeze(model, "");
  model.hold_frozen(true);
  int64_t held = 0;
  for (const auto& p : model.parameters()) held += p.tensor.scalar_type() == torch::kFloat8_e4m3fn;
  EXPECT_EQ(held, 2 * 4) << "four matrices a block, no embedding";
  EXPECT_TRUE(model.forward(torch::tensor({{1, 2, 3}})).isfinite().all().item<bool>());
}

TEST(HoldFrozen, NeedsBlocks) {
  Model model = models::make("mlp", {.classes = 3, .sample_shape = {1, 4, 4}});
  EXPECT_THROW(model.hold_frozen(true), ConfigError);
  model.hold_frozen(false);
}

TEST(LoadStored, TakesValuesIntoHeldWeightsAndOutOfThem) {
  Model held = resnet(), plain = resnet();
  freeze(held, "layer1");
  held.hold_frozen(true);
  const auto state = stored_state(held);
  (void)load_stored(plain, state, true, "test", "");
  Model other = resnet();
  freeze(other, "layer1");
  other.hold_frozen(true);
  for (const auto& p : other.parameters())
    if (p.tensor.scalar_type() == torch::kFloat) p.tensor.detach().zero_();
  (void)load_stored(other, computed_state(plain), true, "test", "");  // rounded again: the same
  const auto x = torch::randn({2, 1, 12, 12});
  for (Model* each : {&held, &plain, &other}) each->train(false);
  EXPECT_TRUE(torch::equal(held.forward(x), plain.forward(x)));
  EXPECT_TRUE(torch::equal(held.forward(x), other.forward(x)));
  auto broken = computed_state(plain);
  for (auto& t : broken) t.tensor = t.tensor.clone();
  broken.front().tensor.zero_();
  for (auto& t : broken)
    if (t.name.starts_with("layer1") && t.tensor.dim() == 4) t.tensor.fill_(std::nanf(""));
  EXPECT_THROW((void)load_stored(other, broken, true, "test", ""), FormatError);
  EXPECT_TRUE(torch::equal(held.forward(x), other.forward(x))) << "nothing has changed";
}

}  // namespace
}  // namespace tare
