// Augmentations by name: what they draw, what they refuse, and what takes their place in a bundle.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/transform/crop.h"
#include "tare/transform/random.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Transforms transforms_of(const std::string& yaml) {
  return config::read<Transforms>(config::parse_text(yaml, "recipe.yaml"));
}

std::vector<uint64_t> augment_seeds(int64_t count) {
  std::vector<uint64_t> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(derive_seed(3, static_cast<uint64_t>(i)));
  return result;
}

/// The message of the ConfigError for a list, or for pictures of a shape.
std::string refusal(const std::string& yaml, const std::vector<int64_t>& shape = {3, 16, 16}) {
  try {
    (void)transforms_of(yaml).output_shape(shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// Lists of transforms that change what is trained on.
const std::vector<std::string> kLists{
    "[crop: {height: 12, width: 10, padding: 2}]",
    "[crop: {height: 16, width: 16, padding: 4, fill: edge}]",
    "[crop: {height: 16, width: 16, padding: 4, fill: reflect}]",
    "[random_resized_crop: {height: 12, width: 8}]",
    "[colour]",
    "[colour: {saturation: 0.5, hue: 0.2}]",
    "[grey: {probability: 0.5}]",
    "[erasing]",
    "[erasing: {fill: noise}]",
    "[rand_augment]",
    "[flip, rand_augment: {operations: 3, magnitude: 15}, normalise: {mean: [0.5], std: [0.2]}]"};

TEST(Augmentations, DependOnTheSeedOfTheSampleOnly) {
  const at::Tensor pictures = at::randint(0, 256, {12, 3, 16, 16}, at::kByte);
  const auto seeds = augment_seeds(12);
  for (const std::string& yaml : kLists) {
    const Transforms transforms = transforms_of(yaml);
    const at::Tensor all = transforms.apply(pictures, seeds, true);
    const at::Tensor again = transforms.apply(pictures.slice(0, 5, 6).contiguous(),
                                              std::span(seeds).subspan(5, 1), true);
    EXPECT_TRUE(at::equal(all.slice(0, 5, 6), again)) << yaml;
    std::vector<uint64_t> others = seeds;
    for (uint64_t& seed : others) seed += 1;
    EXPECT_FALSE(at::equal(all, transforms.apply(pictures, others, true))) << yaml;
    EXPECT_FALSE(all.isnan().any().item<bool>()) << yaml;
  }
}

TEST(Augmentations, GiveTheirShapeInTrainingAndEvaluation) {
  const at::Tensor pictures = at::randint(0, 256, {4, 3, 16, 16}, at::kByte);
  for (const std::string& yaml : kLists) {
    const Transforms transforms = transforms_of(yaml);
    const auto shape = transforms.output_shape({3, 16, 16});
    EXPECT_EQ(transforms.apply(pictures, augment_seeds(4), true)[0].sizes(), shape) << yaml;
    EXPECT_EQ(transforms.apply(pictures, {}, false)[0].sizes(), shape) << yaml;
    EXPECT_EQ(transforms.deterministic().output_shape({3, 16, 16}), shape) << yaml;
    EXPECT_FALSE(transforms.deterministic().random()) << yaml;
    EXPECT_TRUE(at::equal(transforms.deterministic().apply(pictures, {}, false),
                          transforms.apply(pictures, {}, false)))
        << yaml;
  }
}

TEST(Augmentations, ComeBackFromTheirConfigTree) {
  for (const std::string& yaml : kLists) {
    const Transforms transforms = transforms_of(yaml);
    for (const Transforms& each : {transforms, transforms.deterministic()})
      EXPECT_EQ(config::read<Transforms>(config::parse_text(config::to_yaml(to_node(each)), "t")),
                each)
          << yaml;
  }
}

TEST(Augmentations, ABundleHasTheCentreInPlaceOfARandomPart) {
  EXPECT_EQ(transforms_of("[crop: {height: 12, width: 10, padding: 2}, colour]").deterministic(),
            transforms_of("[centre_crop: {height: 12, width: 10}]"));
  EXPECT_EQ(transforms_of("[random_resized_crop: {height: 224, width: 224}]").deterministic(),
            transforms_of("[centre_crop: {height: 224, width: 224, short_side: 256}]"));
  EXPECT_EQ(transforms_of("[random_resized_crop: {height: 8, width: 14, short_side: 20}]")
                .deterministic(),
            transforms_of("[centre_crop: {height: 8, width: 14, short_side: 20}]"));
  EXPECT_TRUE(transforms_of("[erasing, grey, rand_augment]").deterministic().steps().empty());
}

TEST(Augmentations, ACropTakesEveryPlaceOfThePaddedPicture) {
  const at::Tensor picture =
      at::arange(1, 37).to(at::kFloat).view({1, 1, 6, 6}).expand({400, 1, 6, 6}).contiguous();
  const at::Tensor parts = transforms_of("[crop: {height: 4, width: 5, padding: 1}]")
                               .apply(picture, augment_seeds(400), true);
  std::set<std::pair<int, int>> places;
  for (int64_t n = 0; n < 400; ++n) {
    const int value = static_cast<int>(parts[n][0][1][1].item<float>()) - 1;  // inside always
    const int top = value / 6 - 1, left = value % 6 - 1;
    places.insert({top, left});
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) {
        const int row = top + y, column = left + x;
        const bool inside = row >= 0 && row < 6 && column >= 0 && column < 6;
        EXPECT_EQ(parts[n][0][y][x].item<int>(), inside ? row * 6 + column + 1 : 0);
      }
  }
  EXPECT_EQ(places.size(), 5U * 4U);
}

TEST(Augmentations, PaddingRepeatsTheBorderOrReflects) {
  const at::Tensor picture =
      at::arange(9).to(at::kFloat).view({1, 1, 3, 3}).expand({400, 1, 3, 3}).contiguous();
  const auto corners = [&](const char* fill) {
    const at::Tensor parts =
        transforms_of("[crop: {height: 3, width: 3, padding: 2, fill: " + std::string(fill) + "}]")
            .apply(picture, augment_seeds(400), true);
    std::set<int> values;  // of the corner where the part lies two pixels up and left
    for (int64_t n = 0; n < 400; ++n)
      if (parts[n][0][2][2].item<int>() == 0 && parts[n][0][1][2].item<int>() != 1)
        values.insert(parts[n][0][0][0].item<int>());
    return values;
  };
  EXPECT_THAT(corners("edge"), ElementsAre(0));
  EXPECT_THAT(corners("reflect"), ElementsAre(8));
}

TEST(Augmentations, BoxesHaveTheAreaAndTheRatioOfTheirBounds) {
  double least = 1, most = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Box box = draw_box(seed, 60, 80, {0.1, 0.6}, {0.5, 2});
    EXPECT_GE(box.top, 0);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.top + box.height, 60);
    EXPECT_LE(box.left + box.width, 80);
    const double area = static_cast<double>(box.height * box.width) / (60 * 80);
    least = std::min(least, area);
    most = std::max(most, area);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    EXPECT_GT(ratio, 0.45);
    EXPECT_LT(ratio, 2.2);
  }
  EXPECT_NEAR(least, 0.1, 0.02);
  EXPECT_NEAR(most, 0.6, 0.02);
}

TEST(Augmentations, ABoxThatNeverFitsIsTheLargestInTheCentre) {
  const Box wide = draw_box(1, 10, 90, {1, 1}, {0.75, 4.0 / 3});
  EXPECT_EQ(wide.height, 10);
  EXPECT_EQ(wide.width, 13);
  EXPECT_EQ(wide.left, (90 - 13) / 2);
  const Box tall = draw_box(1, 90, 10, {1, 1}, {0.75, 4.0 / 3});
  EXPECT_EQ(tall.width, 10);
  EXPECT_EQ(tall.height, 13);
}

TEST(Augmentations, MasksMoveWithThePictures) {
  const at::Tensor masks = at::randint(0, 2, {40, 16, 16}, at::kLong);
  const at::Tensor pictures = masks.unsqueeze(1).mul(255).to(at::kByte);
  const auto seeds = augment_seeds(40);
  // With fill: reflect and without, a pixel of the mask is the pixel of the picture.
  for (const char* yaml :
       {"[crop: {height: 12, width: 10, padding: 3}]", "[flip, erasing: {probability: 0}]",
        "[crop: {height: 16, width: 16, padding: 4, fill: reflect}, flip]"}) {
    const Transforms transforms = transforms_of(yaml);
    const at::Tensor moved = transforms.apply(pictures, seeds, true).squeeze(1);
    const at::Tensor mask = transforms.apply_to_targets(masks, seeds, true);
    EXPECT_EQ(mask.sizes(), moved.sizes());
    const at::Tensor known = mask.ge(0);
    EXPECT_TRUE(at::equal(mask.masked_select(known).to(at::kFloat), moved.masked_select(known)));
    EXPECT_FALSE(moved.masked_select(known.logical_not()).gt(0).any().item<bool>()) << yaml;
  }
}

TEST(Augmentations, MasksMoveWithRandAugmentAndKeepTheirClasses) {
  at::Tensor masks = at::full({200, 16, 16}, 0, at::kLong);
  masks.slice(1, 4, 11).slice(2, 5, 13).fill_(1);
  const at::Tensor pictures = masks.unsqueeze(1).mul(200).add(20).to(at::kByte);
  const auto seeds = augment_seeds(200);
  const Transforms transforms = transforms_of("[rand_augment: {operations: 1, magnitude: 12}]");
  const at::Tensor moved = transforms.apply(pictures, seeds, true).squeeze(1);
  const at::Tensor mask = transforms.apply_to_targets(masks, seeds, true);
  EXPECT_TRUE(mask.eq(0).logical_or(mask.eq(1)).logical_or(mask.eq(-100)).all().item<bool>());
  EXPECT_TRUE(mask.eq(-100).any().item<bool>()) << "nothing moved in";
  int64_t moves = 0;
  for (int64_t n = 0; n < 200; ++n) {
    if (at::equal(mask[n], masks[n])) continue;  // a change of colours, or none
    ++moves;
    const at::Tensor expected = mask[n].mul(200).add(20).masked_fill(mask[n].eq(-100), 0);
    EXPECT_TRUE(at::equal(moved[n].mul(255).round().to(at::kLong), expected)) << n;
  }
  EXPECT_GT(moves, 30);
}

TEST(Augmentations, MasksAreResizedWithThePart) {
  const at::Tensor masks = at::randint(0, 5, {20, 16, 16}, at::kLong);
  const auto seeds = augment_seeds(20);
  const Transforms transforms = transforms_of("[random_resized_crop: {height: 8, width: 12}]");
  const at::Tensor mask = transforms.apply_to_targets(masks, seeds, true);
  EXPECT_THAT(mask.sizes().vec(), ElementsAre(20, 8, 12));
  EXPECT_GE(mask.min().item<int64_t>(), 0);
  EXPECT_LE(mask.max().item<int64_t>(), 4);
  const at::Tensor pictures = at::randint(0, 256, {20, 1, 16, 16}).to(at::kFloat).div(255);
  EXPECT_TRUE(at::equal(transforms.apply_to_targets(pictures, seeds, true),
                        transforms.apply(pictures, seeds, true)));
  EXPECT_THAT(transforms.apply_to_targets(masks, {}, false).sizes().vec(), ElementsAre(20, 8, 12));
}

TEST(Augmentations, ColoursOfAMaskStay) {
  const at::Tensor masks = at::randint(0, 2, {6, 16, 16}, at::kLong);
  EXPECT_TRUE(at::equal(transforms_of("[colour, grey: {probability: 1}, erasing: {probability: 1}]")
                            .apply_to_targets(masks, augment_seeds(6), true),
                        masks));
}

TEST(Augmentations, AMaskOfAnotherSizeIsRefusedWherePixelsMove) {
  EXPECT_THROW(transforms_of("[crop: {height: 8, width: 8}]")
                   .check_targets_move("mask", {4, 5, 5}, {4, 1, 16, 16}),
               ConfigError);
  transforms_of("[colour, erasing]").check_targets_move("mask", {4, 5, 5}, {4, 1, 16, 16});
}

TEST(Augmentations, ErasesAPartOfTheGivenArea) {
  const at::Tensor pictures = at::full({200, 1, 32, 32}, 0.75, at::kFloat);
  const at::Tensor erased =
      transforms_of("[erasing: {probability: 0.5, scale: [0.1, 0.2], value: -2}]")
          .apply(pictures, augment_seeds(200), true);
  EXPECT_TRUE(erased.eq(0.75).logical_or(erased.eq(-2)).all().item<bool>());
  const at::Tensor share = erased.eq(-2).to(at::kFloat).flatten(1).mean(1);
  const auto some = share.gt(0).sum().item<int64_t>();
  EXPECT_GT(some, 70);
  EXPECT_LT(some, 130);
  EXPECT_GT(share.masked_select(share.gt(0)).min().item<float>(), 0.08);
  EXPECT_LT(share.max().item<float>(), 0.22);
  const at::Tensor noise =
      transforms_of("[erasing: {probability: 1, scale: [0.3, 0.3], fill: noise}]")
          .apply(pictures, augment_seeds(200), true);
  const at::Tensor drawn = noise.masked_select(noise.ne(0.75));
  EXPECT_NEAR(drawn.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(drawn.std().item<double>(), 1, 0.02);
}

TEST(Augmentations, GreyTakesTheColoursOfItsShareOfThePictures) {
  const at::Tensor pictures = at::randint(0, 256, {400, 3, 4, 4}, at::kByte);
  const at::Tensor grey =
      transforms_of("[grey: {probability: 0.3}]").apply(pictures, augment_seeds(400), true);
  const auto equal =
      grey.select(1, 0).eq(grey.select(1, 1)).flatten(1).all(1).sum().item<int64_t>();
  EXPECT_GT(equal, 90);
  EXPECT_LT(equal, 150);
}

TEST(Augmentations, RefuseWhatTheyCannotDo) {
  EXPECT_THAT(refusal("[crop]"), HasSubstr("height"));
  EXPECT_THAT(refusal("[crop: {height: 17, width: 16, padding: 4}]"),
              AllOf(HasSubstr("transforms.0.crop.height"), HasSubstr("at most 16")));
  EXPECT_THAT(refusal("[flip, centre_crop: {height: 16, width: 20}]"),
              AllOf(HasSubstr("transforms.1.centre_crop.width"), HasSubstr("16 x 16")));
  EXPECT_THAT(refusal("[crop: {height: 8, width: 8, padding: 16, fill: reflect}]"),
              AllOf(HasSubstr("padding"), HasSubstr("at most 15")));
  EXPECT_THAT(refusal("[crop: {height: 8, width: 8, fill: mirror}]"), HasSubstr("reflect"));
  EXPECT_THAT(refusal("[random_resized_crop: {height: 8, width: 8, scale: [0.5]}]"),
              HasSubstr("[least, most]"));
  EXPECT_THAT(refusal("[random_resized_crop: {height: 8, width: 8, scale: [0.9, 0.5]}]"),
              HasSubstr("[0.9, 0.5]"));
  EXPECT_THAT(refusal("[random_resized_crop: {height: 8, width: 8, scale: [0.9, 1.5]}]"),
              HasSubstr("<= 1"));
  EXPECT_THAT(refusal("[random_resized_crop: {height: 8, width: 8, short_side: 7}]"),
              HasSubstr("at least 8"));
  EXPECT_THAT(refusal("[colour: {brightness: 0, contrast: 0}]"), HasSubstr("changes nothing"));
  EXPECT_THAT(refusal("[colour: {hue: 0.6}]"), HasSubstr("0.5"));
  EXPECT_THAT(refusal("[colour: {hue: 0.1}]", {1, 16, 16}), HasSubstr("one channel"));
  EXPECT_EQ(refusal("[colour]", {1, 16, 16}), "");
  EXPECT_THAT(refusal("[colour]", {4, 16, 16}), HasSubstr("4"));
  EXPECT_THAT(refusal("[grey]", {1, 16, 16}), HasSubstr("three channels"));
  EXPECT_THAT(refusal("[rand_augment]", {2, 16, 16}), HasSubstr("2"));
  EXPECT_THAT(refusal("[rand_augment: {magnitude: 31}]"), HasSubstr("0 to 30"));
  EXPECT_THAT(refusal("[erasing: {ratio: [3, 1]}]"), HasSubstr("[3, 1]"));
  for (const char* name : {"colour", "grey", "rand_augment"})
    EXPECT_THAT(refusal("[normalise: {mean: [0.5], std: [0.5]}, " + std::string(name) + "]"),
                HasSubstr("a place before normalise"));
  EXPECT_EQ(refusal("[normalise: {mean: [0.5], std: [0.5]}, erasing]"), "");
}

}  // namespace
}  // namespace tare
