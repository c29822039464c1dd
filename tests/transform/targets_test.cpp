// Targets that are images move with the inputs; a rounding resize equals a reader's.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tare/base/error.h"
#include "tare/transform/image.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

constexpr int64_t kSide = 9;

std::vector<uint64_t> counted_seeds(size_t count) {
  std::vector<uint64_t> all(count);
  std::iota(all.begin(), all.end(), uint64_t{100});
  return all;
}

/// Bright shapes on black; the mask is 1 where the picture is bright.
at::Tensor pictures(int64_t count) {
  return at::randint(0, 2, {count, 1, kSide, kSide}).mul(255).to(at::kByte);
}
at::Tensor masks(const at::Tensor& pictures) { return pictures.squeeze(1).gt(0).to(at::kLong); }

/// Where the moved mask knows the class, the moved picture has it.
int64_t disagreements(const at::Tensor& picture, const at::Tensor& mask) {
  const at::Tensor bright = picture.squeeze(1).gt(0.5).to(at::kLong);
  return bright.ne(mask).logical_and(mask.ge(0)).sum().item<int64_t>();
}

class MovesTogether : public ::testing::TestWithParam<Transforms> {};

TEST_P(MovesTogether, PictureAndMask) {
  const at::Tensor images = pictures(30), classes = masks(images);
  const auto s = counted_seeds(30);
  const at::Tensor moved = GetParam().apply(images, s, true);
  const at::Tensor mask = GetParam().apply_to_targets(classes, s, true);
  EXPECT_EQ(disagreements(moved, mask), 0);
  EXPECT_FALSE(at::equal(mask, classes)) << "nothing moved";
  // A target with channels moves as one without.
  EXPECT_TRUE(
      at::equal(GetParam().apply_to_targets(classes.unsqueeze(1), s, true).squeeze(1), mask));
  EXPECT_TRUE(at::equal(GetParam().apply_to_targets(classes, s, false), classes));
}

INSTANTIATE_TEST_SUITE_P(Random, MovesTogether,
                         ::testing::Values(Transforms{Flip{0.5}}, Transforms{Shift{3}},
                                           Transforms{Shift{3, "edge"}},
                                           Transforms{Shift{2}, Flip{0.5}},
                                           Transforms{Flip{0.5}, Shift{2}, Flip{0.5}, Shift{1}}));

TEST(Targets, WhatMovesInIsIgnoredByTheLosses) {
  const at::Tensor ones = at::full({40, kSide, kSide}, 1, at::kLong);
  const at::Tensor moved = Transforms{Shift{3}}.apply_to_targets(ones, counted_seeds(40), true);
  EXPECT_EQ(moved.min().item<int64_t>(), -100);
  EXPECT_EQ(moved.max().item<int64_t>(), 1);
  EXPECT_TRUE(moved.eq(1).logical_or(moved.eq(-100)).all().item<bool>());
}

TEST(Targets, PicturesAsTargetsAreInterpolatedAsTheInputs) {
  const at::Tensor images = at::randint(0, 256, {20, 2, kSide, kSide}).to(at::kFloat).div(255);
  const auto s = counted_seeds(20);
  for (const bool antialias : {false, true}) {
    const Transforms transforms{Affine{25, 0.2}, Flip{0.5},
                                Resize{.height = 4, .width = 6, .antialias = antialias}};
    const at::Tensor moved = transforms.apply(images, s, true);
    const at::Tensor targets = transforms.apply_to_targets(images, s, true);
    EXPECT_EQ(targets.sizes(), moved.sizes());
    EXPECT_LT(targets.sub(moved).abs().max().item<float>(), 1e-6) << antialias;
  }
}

TEST(Targets, ATurnedMaskHasTheClassOfTheNearestPixel) {
  at::Tensor mask = at::full({1, kSide, kSide}, 0, at::kLong);
  mask.narrow(2, 5, 4).fill_(7);
  const at::Tensor turned =
      Transforms{(Affine{180, 0})}.apply_to_targets(mask, counted_seeds(1), true);
  const at::Tensor known = turned.eq(0).logical_or(turned.eq(7)).logical_or(turned.eq(-100));
  EXPECT_TRUE(known.all().item<bool>()) << "classes were mixed";
  EXPECT_FALSE(at::equal(turned, mask));
}

TEST(Targets, AMaskIsResizedToClassesAndNotNormalised) {
  const Transforms transforms{Resize{2 * kSide, 3 * kSide}, Normalise{{0.5}, {0.1}}};
  const at::Tensor mask = at::randint(0, 5, {3, kSide, kSide}, at::kLong);
  const at::Tensor resized = transforms.apply_to_targets(mask, {}, false);
  EXPECT_EQ(resized.sizes(), at::IntArrayRef({3, 2 * kSide, 3 * kSide}));
  EXPECT_TRUE(at::equal(
      resized.repeat_interleave(1, 0).slice(1, 1, 2 * kSide, 2).slice(2, 1, 3 * kSide, 3), mask));
}

TEST(Targets, OnlyImagesOfTheInputsSizeMove) {
  EXPECT_TRUE(Transforms::are_images({4, 9, 9}, {4, 1, 9, 9}));
  EXPECT_TRUE(Transforms::are_images({4, 2, 9, 9}, {4, 1, 9, 9}));
  EXPECT_FALSE(Transforms::are_images({4}, {4, 1, 9, 9}));
  EXPECT_FALSE(Transforms::are_images({4, 9}, {4, 1, 9, 9}));
  EXPECT_FALSE(Transforms::are_images({4, 9, 8}, {4, 1, 9, 9}));
  EXPECT_FALSE(Transforms::are_images({4, 9, 9}, {4, 9}));
}

TEST(Targets, OtherTypesAreRefused) {
  const Transforms flip{Flip{}};
  EXPECT_THROW(
      (void)flip.apply_to_targets(at::full({1, 3, 3}, 1, at::kInt), counted_seeds(1), true),
      ShapeError);
  EXPECT_THROW(
      (void)flip.apply_to_targets(at::full({2, 3, 3}, 1, at::kLong), counted_seeds(1), true),
      ShapeError);
}

TEST(RoundingResize, EqualsAnImageThatWasResizedBefore) {
  const at::Tensor image = at::randint(0, 256, {3, 13, 17}).to(at::kByte);
  const at::Tensor read = resize_image(image, 8, 10);
  for (const Transforms& rest :
       {Transforms{}, Transforms{Normalise{{0.4}, {0.2}}}, Transforms{Resize{5, 4}},
        Transforms{Resize{5, 4}, Normalise{{0.4}, {0.2}}}}) {
    std::vector<Transform> steps{Resize{8, 10, true}};
    steps.insert(steps.end(), rest.steps().begin(), rest.steps().end());
    EXPECT_TRUE(at::equal(Transforms(steps).apply(image.unsqueeze(0), {}, false),
                          rest.apply(read.unsqueeze(0), {}, false)));
  }
  EXPECT_FALSE(at::equal((Transforms{Resize{8, 10, true}}.apply(image.unsqueeze(0), {}, false)),
                         (Transforms{Resize{8, 10}}.apply(image.unsqueeze(0), {}, false))));
}

}  // namespace
}  // namespace tare
