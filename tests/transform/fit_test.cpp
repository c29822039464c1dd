// Tests how stretch, crop and pad change images of another aspect ratio, and their masks.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/transform/image.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

struct Size {
  int64_t height = 0, width = 0;
};

/// The whole image is scaled to `scaled`, and the result begins at `top` and `left` of it. The
/// numbers were computed by torchvision's Resize and CenterCrop, and by Pillow's ImageOps.pad().
/// Pillow refuses the images with a side that becomes 0; the side is 1 here.
struct Fitted {
  const char* fit;
  Size from, to, scaled;
  int64_t top = 0, left = 0;
};

const Fitted kFitted[] = {
    {"crop", {29, 37}, {16, 16}, {16, 20}, 0, 2}, {"crop", {37, 29}, {16, 16}, {20, 16}, 2, 0},
    {"crop", {5, 9}, {4, 4}, {4, 7}, 0, 2},       {"crop", {9, 5}, {4, 6}, {10, 6}, 3, 0},
    {"crop", {4, 4}, {7, 3}, {7, 7}, 0, 2},       {"crop", {1, 8}, {3, 3}, {3, 24}, 0, 10},
    {"crop", {8, 1}, {3, 3}, {24, 3}, 10, 0},     {"crop", {1, 1}, {5, 4}, {5, 5}, 0, 0},
    {"crop", {6, 7}, {5, 5}, {5, 5}, 0, 0},       {"crop", {1, 2000}, {8, 8}, {8, 16000}, 0, 7996},
    {"crop", {10, 10}, {10, 10}, {10, 10}, 0, 0}, {"pad", {29, 37}, {16, 16}, {13, 16}, -2, 0},
    {"pad", {37, 29}, {16, 16}, {16, 13}, 0, -2}, {"pad", {5, 9}, {4, 4}, {2, 4}, -1, 0},
    {"pad", {9, 5}, {4, 6}, {4, 2}, 0, -2},       {"pad", {4, 4}, {7, 3}, {3, 3}, -2, 0},
    {"pad", {1, 8}, {3, 3}, {1, 3}, -1, 0},       {"pad", {8, 1}, {3, 3}, {3, 1}, 0, -1},
    {"pad", {1, 1}, {5, 4}, {4, 4}, 0, 0},        {"pad", {6, 7}, {5, 5}, {4, 5}, 0, 0},
    {"pad", {50, 3}, {8, 8}, {8, 1}, 0, -4},      {"pad", {7, 13}, {8, 8}, {4, 8}, -2, 0},
    {"pad", {10, 10}, {10, 10}, {10, 10}, 0, 0},  {"stretch", {5, 9}, {4, 6}, {4, 6}, 0, 0},
};

std::string text_of(const Fitted& f) {
  const auto size = [](Size s) {
    return std::to_string(s.height) + " x " + std::to_string(s.width);
  };
  return std::string(f.fit) + " " + size(f.from) + " to " + size(f.to);
}

/// Cuts the result of `f` out of [..., scaled.height, scaled.width], or puts these into `fill`.
at::Tensor placed(const Fitted& f, const at::Tensor& scaled, double fill) {
  std::vector<int64_t> shape = scaled.sizes().vec();
  shape[shape.size() - 2] = f.to.height;
  shape.back() = f.to.width;
  at::Tensor result = at::full(shape, fill, scaled.options());
  const int64_t height = std::min(f.to.height, f.scaled.height),
                width = std::min(f.to.width, f.scaled.width);
  result.narrow(-2, std::max<int64_t>(-f.top, 0), height)
      .narrow(-1, std::max<int64_t>(-f.left, 0), width)
      .copy_(scaled.narrow(-2, std::max<int64_t>(f.top, 0), height)
                 .narrow(-1, std::max<int64_t>(f.left, 0), width));
  return result;
}

Resize resize_of(const Fitted& f, bool round, bool antialias) {
  return {.height = f.to.height,
          .width = f.to.width,
          .round = round,
          .antialias = antialias,
          .fit = f.fit};
}

TEST(Fit, PicturesArePartsOfTheScaledPicture) {
  for (const Fitted& f : kFitted) {
    const at::Tensor picture = at::randint(1, 256, {3, f.from.height, f.from.width}).to(at::kByte);
    for (const bool antialias : {true, false}) {
      const at::Tensor scaled = resize_image(picture, f.scaled.height, f.scaled.width, antialias);
      const at::Tensor got = resize_image(picture, f.to.height, f.to.width, antialias, f.fit);
      EXPECT_TRUE(at::equal(got, placed(f, scaled, 0))) << text_of(f) << antialias;
    }
  }
}

TEST(Fit, AFollowingNormaliseActsOnThePaddingToo) {
  constexpr double kFloatRounding = 1e-5;
  for (const Fitted& f : kFitted) {
    for (const bool antialias : {true, false}) {
      const at::Tensor images = at::rand({2, 1, f.from.height, f.from.width});
      const Transforms fitted{resize_of(f, false, antialias), Normalise{{0.5}, {0.25}}};
      const Transforms whole{
          Resize{.height = f.scaled.height, .width = f.scaled.width, .antialias = antialias}};
      const at::Tensor want = placed(f, whole.apply(images, {}, false), 0).sub(0.5).div(0.25);
      const at::Tensor got = fitted.apply(images, {}, false);
      EXPECT_LT(got.sub(want).abs().max().item<double>(), kFloatRounding)
          << text_of(f) << antialias;
    }
  }
}

TEST(Fit, MasksMoveWithTheirPicturesAndArePaddedWithWhatTheLossesIgnore) {
  for (const Fitted& f : kFitted) {
    const auto check = [&](at::ScalarType type, double padding) {
      const at::Tensor mask = at::randint(1, 6, {2, f.from.height, f.from.width}).to(type);
      const Transforms whole{Resize{.height = f.scaled.height, .width = f.scaled.width}};
      const at::Tensor got = Transforms{resize_of(f, true, true)}.apply_to_targets(mask, {}, false);
      const at::Tensor want = placed(f, whole.apply_to_targets(mask, {}, false), padding);
      EXPECT_TRUE(at::equal(got, want)) << text_of(f) << at::toString(type);
    };
    check(at::kLong, -100);
    check(at::kByte, 0);
    check(at::kFloat, 0);
  }
}

TEST(Fit, IsReadFromARecipeAndWrittenToABundle) {
  const auto list = [](const std::string& text) {
    return config::read<Transforms>(config::parse_text(text, "test"));
  };
  const Transforms pad{Resize{.height = 4, .width = 6, .fit = "pad"}};
  EXPECT_EQ(list("[{resize: {height: 4, width: 6, fit: pad}}]"), pad);
  EXPECT_EQ(config::read<Transforms>(config::to_node(pad)), pad);
  const Transforms stretch{Resize{.height = 4, .width = 6}};
  EXPECT_EQ(list("[{resize: {height: 4, width: 6}}]"), stretch);
  EXPECT_NE(pad, stretch);
  try {
    (void)list("[{resize: {height: 4, width: 6, fit: squash}}]");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("crop"));
    EXPECT_THAT(error.what(), HasSubstr("got squash"));
  }
}

}  // namespace
}  // namespace tare
