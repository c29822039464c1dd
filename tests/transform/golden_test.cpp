// Augmentations of fixed strength against torchvision's results in tests/golden/augmentations.json.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tare/base/io.h"
#include "tare/config/node.h"
#include "tare/transform/colour_ops.h"
#include "tare/transform/crop.h"
#include "tare/transform/rand_augment.h"
#include "tare/transform/random.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

using nlohmann::json;

// Both compute in float32, in another order; values are in units of 1/255, and printed with four
// decimals.
constexpr double kColourRounding = 2e-3;
// A value that a rounding error moves across a whole number loses one unit with its fraction.
constexpr double kFractionLost = 1;
// The share of pixels that such an error may change: in moves it picks another nearest pixel.
constexpr double kChangedPixels = 0.02;

const json& augmentations() {
  static const json all =
      json::parse(io::read_text(std::string(TARE_GOLDEN) + "/augmentations.json"));
  return all;
}

at::Tensor picture_of(const json& values, int64_t height, int64_t width) {
  const auto numbers = values.get<std::vector<double>>();
  return at::tensor(numbers, at::kDouble).to(at::kFloat).view({-1, height, width});
}

/// Returns the picture of a case, in [0, 255].
at::Tensor input_of(const json& one) {
  const json& all = augmentations();
  return picture_of(all["pictures"][one["picture"].get<std::string>()], all["height"],
                    all["width"]);
}

template <class T>
Planes<T> planes_of(const at::Tensor& picture) {
  return {picture.mutable_data_ptr<T>(), picture.size(0), picture.size(1), picture.size(2)};
}

double most_difference(const at::Tensor& one, const at::Tensor& other) {
  return (one.to(at::kFloat) - other.to(at::kFloat)).abs().max().item<double>();
}

TEST(Golden, ColoursAreThoseOfTorchvision) {
  std::map<std::string, int> seen;
  for (const json& one : augmentations()["colours"]) {
    const std::string operation = one["operation"];
    const at::Tensor picture = input_of(one) / 255;
    const Planes<float> planes = planes_of<float>(picture);
    const double factor = one["factor"];
    if (operation == "brightness") adjust_brightness(planes, factor);
    if (operation == "contrast") adjust_contrast(planes, factor);
    if (operation == "saturation") adjust_saturation(planes, factor);
    if (operation == "hue") adjust_hue(planes, static_cast<float>(factor));
    if (operation == "grey") make_grey(planes);
    const at::Tensor expected = picture_of(one["values"], picture.size(1), picture.size(2));
    EXPECT_LT(most_difference(picture * 255, expected), kColourRounding)
        << one["picture"] << operation;
    ++seen[operation];
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Golden, OperationsOfRandAugmentAreThoseOfTorchvision) {
  constexpr int64_t kMagnitude = 17, kLevels = 31;
  const std::vector<std::string> theirs{
      "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
      "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};
  size_t cases = 0;
  for (const json& one : augmentations()["operations"]) {
    const std::string name = one["operation"];
    const auto index = static_cast<size_t>(std::ranges::find(theirs, name) - theirs.begin());
    ASSERT_LT(index, theirs.size()) << name;
    const at::Tensor before = input_of(one).to(at::kByte), picture = before.clone();
    const int64_t height = picture.size(1), width = picture.size(2);
    Operation operation = operation_of(index, kMagnitude, kLevels, height, width);
    EXPECT_EQ(operation.has_sign || one["sign"] == 1, true);
    // torchvision cuts the fraction of a translation when it moves the pixels.
    const double fraction = name.starts_with("Translate") ? 1 : 1e-4;
    EXPECT_NEAR(operation.magnitude, one["magnitude"].get<double>(), fraction) << name;
    operation.magnitude *= one["sign"].get<float>();
    apply_colours(operation, planes_of<uint8_t>(picture));
    const Warp warp = warp_of(operation, height, width);
    const at::Tensor result = at::empty_like(picture);
    for (int64_t c = 0; c < picture.size(0); ++c)
      warp_plane(picture[c].const_data_ptr<uint8_t>(), result[c].mutable_data_ptr<uint8_t>(),
                 height, width, warp, uint8_t{0});
    const at::Tensor expected = picture_of(one["values"], height, width);
    at::Tensor wrong = result.to(at::kFloat).ne(expected);
    // torchvision mixes the border with itself, which loses the fraction of a rounding error.
    if (name == "Sharpness") wrong = wrong.slice(1, 1, height - 1).slice(2, 1, width - 1);
    if (index >= 1 && index <= 5) {
      EXPECT_LE(wrong.to(at::kFloat).mean().item<double>(), kChangedPixels) << name;
    } else {
      EXPECT_LE(most_difference(result, expected), kFractionLost) << name;
    }
    EXPECT_LE(wrong.to(at::kFloat).mean().item<double>(), kChangedPixels) << name;
    EXPECT_EQ(at::equal(result, before), at::equal(expected, before.to(at::kFloat))) << name;
    ++cases;
  }
  EXPECT_EQ(cases, 46U);
}

TEST(Golden, APartIsCutOutAndResizedAsByTorchvision) {
  int cases = 0;
  for (const json& one : augmentations()["crops"]) {
    if (!one.contains("box")) continue;
    const auto box = one["box"].get<std::vector<int64_t>>();
    const auto to = one["to"].get<std::vector<int64_t>>();
    const at::Tensor picture = input_of(one).div(255).unsqueeze(0);
    const at::Tensor part = picture.narrow(2, box[0], box[2]).narrow(3, box[1], box[3]);
    const at::Tensor got = Transforms{Resize{to[0], to[1]}}.apply(part.contiguous(), {}, false);
    EXPECT_LT(most_difference(got[0] * 255, picture_of(one["values"], to[0], to[1])),
              kColourRounding);
    ++cases;
  }
  EXPECT_EQ(cases, 6);
  // random_resized_crop does so with the box that it draws.
  const auto transforms = config::read<Transforms>(
      config::parse_text("[random_resized_crop: {height: 5, width: 7}]", "test"));
  const at::Tensor picture = input_of(augmentations()["crops"].front()).div(255).unsqueeze(0);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Box box = draw_box(derive_seed(seed, 0), picture.size(2), picture.size(3), {0.08, 1},
                             {0.75, 4.0 / 3});
    const at::Tensor part =
        picture.narrow(2, box.top, box.height).narrow(3, box.left, box.width).contiguous();
    EXPECT_TRUE(at::equal(transforms.apply(picture, std::vector{seed}, true),
                          Transforms{Resize{5, 7}}.apply(part, {}, false)))
        << seed;
  }
}

TEST(Golden, TheCentreIsThatOfTorchvision) {
  int cases = 0;
  for (const json& one : augmentations()["crops"]) {
    if (!one.contains("short_side")) continue;
    const at::Tensor picture = input_of(one).div(255).unsqueeze(0).contiguous();
    const std::string yaml = "[centre_crop: {height: " + one["to"][0].dump() +
                             ", width: " + one["to"][1].dump() +
                             ", short_side: " + one["short_side"].dump() + "}]";
    const auto transforms = config::read<Transforms>(config::parse_text(yaml, "test"));
    const at::Tensor got = transforms.apply(picture, {}, false);
    EXPECT_LT(most_difference(got[0] * 255, picture_of(one["values"], one["to"][0], one["to"][1])),
              kColourRounding)
        << yaml;
    ++cases;
  }
  EXPECT_EQ(cases, 6);
}

}  // namespace
}  // namespace tare
