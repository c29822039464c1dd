// Transforms on images, in one pass and in several.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "tare/base/error.h"
#include "tare/transform/random.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

at::Tensor byte_images(at::IntArrayRef shape) { return at::randint(0, 256, shape, at::kByte); }

std::vector<uint64_t> seeds(int64_t count) {
  std::vector<uint64_t> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(derive_seed(5, static_cast<uint64_t>(i)));
  return result;
}

void expect_near(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LE((a - b).abs().max().item<double>(), tolerance);
}

constexpr double kRounding = 2e-6;  // a few float32 roundings of values near 1

TEST(Transforms, EmptyPipelineDividesBytesBy255) {
  const at::Tensor images = byte_images({3, 2, 5, 4});
  EXPECT_TRUE(at::equal(Transforms().apply(images, {}, true), images.to(at::kFloat) / 255));
}

TEST(Transforms, EmptyPipelineCopiesFloats) {
  const at::Tensor images = at::rand({2, 1, 3, 3});
  const at::Tensor result = Transforms().apply(images, {}, false);
  EXPECT_TRUE(at::equal(result, images));
  EXPECT_NE(result.data_ptr(), images.data_ptr());
}

TEST(Transforms, NormaliseSubtractsAndDividesPerChannel) {
  const at::Tensor images = byte_images({4, 3, 6, 5});
  const Transforms transforms{Normalise{{0.4, 0.5, 0.6}, {0.2, 0.3, 0.4}}};
  const at::Tensor got = transforms.apply(images, {}, false);
  for (int64_t c = 0; c < 3; ++c) {
    const double mean = 0.4 + 0.1 * static_cast<double>(c),
                 std = 0.2 + 0.1 * static_cast<double>(c);
    expect_near(got.select(1, c), (images.select(1, c).to(at::kFloat) / 255 - mean) / std,
                kRounding);
  }
}

TEST(Transforms, ResizeEqualsLibTorchsBilinear) {
  for (const auto& [height, width] : {std::pair{32, 40}, {13, 9}, {28, 28}, {1, 1}, {7, 90}}) {
    const at::Tensor images = byte_images({2, 3, 28, 20}), floats = images.to(at::kFloat) / 255;
    const Transforms nearest_four{Resize{.height = height, .width = width, .antialias = false}};
    const at::Tensor want = at::upsample_bilinear2d(floats, {height, width}, false);
    expect_near(nearest_four.apply(images, {}, false), want, kRounding);
    expect_near(nearest_four.apply(floats, {}, false), want, kRounding);
    const Transforms mean{Resize{.height = height, .width = width}};
    const at::Tensor smooth = at::_upsample_bilinear2d_aa(floats, {height, width}, false);
    expect_near(mean.apply(images, {}, false), smooth, kRounding);
    expect_near(mean.apply(floats, {}, false), smooth, kRounding);
  }
}

TEST(Transforms, AntialiasedBytesAreRoundedOnlyOnRequest) {
  constexpr float kLevel = 1.0F / 255;
  const at::Tensor images = byte_images({2, 3, 28, 20});
  const auto resized = [&](bool round) {
    return Transforms{Resize{.height = 9, .width = 13, .round = round}}.apply(images, {}, false);
  };
  const at::Tensor levels = resized(true).mul(255);
  expect_near(levels, levels.round(), 1e-4);
  expect_near(resized(true), resized(false), kLevel + kRounding);
  EXPECT_FALSE(at::equal(resized(true), resized(false)));
}

TEST(Transforms, StepsActInTheirOrder) {
  const at::Tensor images = byte_images({2, 1, 8, 8});
  const Transforms both{Normalise{{0.1}, {0.3}}, Resize{12, 10}, Normalise{{0.5}, {2.0}}};
  const at::Tensor first = (images.to(at::kFloat) / 255 - 0.1) / 0.3;
  const at::Tensor want = (at::_upsample_bilinear2d_aa(first, {12, 10}, false) - 0.5) / 2.0;
  expect_near(both.apply(images, {}, false), want, 5 * kRounding);
}

TEST(Flip, MirrorsWithItsProbability) {
  const at::Tensor images = byte_images({400, 1, 3, 4});
  const at::Tensor plain = images.to(at::kFloat) / 255;
  const at::Tensor got = Transforms{Flip{0.25}}.apply(images, seeds(400), true);
  const at::Tensor mirrored = plain.flip({3});
  int64_t flipped = 0;
  for (int64_t i = 0; i < 400; ++i) {
    if (at::equal(got[i], plain[i])) continue;
    ASSERT_TRUE(at::equal(got[i], mirrored[i]));
    ++flipped;
  }
  EXPECT_NEAR(static_cast<double>(flipped), 100, 35);  // 4 sigma
  EXPECT_TRUE(at::equal(Transforms{Flip{1}}.apply(images, seeds(400), true), mirrored));
  EXPECT_TRUE(at::equal(Transforms{Flip{0}}.apply(images, seeds(400), true), plain));
}

// Every shift of `image` ([1, H, W]) with the given border, for comparison.
at::Tensor shifted(const at::Tensor& image, int64_t down, int64_t right, bool edge) {
  at::Tensor out = at::zeros_like(image);
  const int64_t height = image.size(1), width = image.size(2);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      int64_t from_y = y - down, from_x = x - right;
      if (edge) {
        from_y = std::clamp<int64_t>(from_y, 0, height - 1);
        from_x = std::clamp<int64_t>(from_x, 0, width - 1);
      }
      if (from_y >= 0 && from_y < height && from_x >= 0 && from_x < width)
        out[0][y][x] = image[0][from_y][from_x];
    }
  return out;
}

class ShiftPadding : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Both, ShiftPadding, ::testing::Values("zero", "edge"));

TEST_P(ShiftPadding, MovesByWholePixels) {
  constexpr int64_t kPixels = 5;
  const at::Tensor image = (at::arange(1, 43).view({1, 1, 6, 7})).to(at::kByte);
  const at::Tensor images = image.expand({300, 1, 6, 7}).contiguous();
  const at::Tensor got = Transforms{Shift{kPixels, GetParam()}}.apply(images, seeds(300), true);
  const bool edge = std::string_view(GetParam()) == "edge";
  std::set<std::pair<int64_t, int64_t>> found;
  std::vector<std::tuple<int64_t, int64_t, at::Tensor>> all;
  for (int64_t down = -kPixels; down <= kPixels; ++down)
    for (int64_t right = -kPixels; right <= kPixels; ++right)
      all.emplace_back(down, right, shifted(image[0].to(at::kFloat) / 255, down, right, edge));
  for (int64_t i = 0; i < 300; ++i) {
    bool matched = false;
    for (const auto& [down, right, want] : all)
      if (at::equal(got[i], want)) {
        matched = true;
        found.emplace(down, right);
      }
    ASSERT_TRUE(matched) << got[i];
  }
  EXPECT_GT(found.size(), 60U);  // of 121 shifts, in 300 draws
}

TEST(Shift, ThatMayMoveImagesOutOfThemselvesIsRefused) {
  const at::Tensor images = byte_images({2, 1, 3, 4});
  EXPECT_NO_THROW((void)Transforms{Shift{2}}.apply(images, seeds(2), true));
  EXPECT_THROW((void)Transforms{Shift{3}}.apply(images, seeds(2), true), ConfigError);
}

TEST(Shift, AfterNormaliseTheBorderIsZeroOfTheNormalisedImage) {
  const at::Tensor images = byte_images({50, 1, 4, 4});
  const Normalise normalise{{0.5}, {0.25}};
  const at::Tensor before = Transforms{Shift{3}, normalise}.apply(images * 0, seeds(50), true);
  const at::Tensor after = Transforms{normalise, Shift{3}}.apply(images * 0, seeds(50), true);
  EXPECT_TRUE(at::equal(before, at::full_like(before, -2)));
  EXPECT_GT((after == 0).sum().item<int64_t>(), 0);
  EXPECT_TRUE(((after == 0) | (after == -2)).all().item<bool>());
}

TEST(Transforms, MovesInOnePassEqualMovesInSeveral) {
  // The first list runs as one pass; in the second a Normalise that changes nothing cuts it in two.
  // A step's place in the list is part of its seed, so both lists have the random steps at the same
  // places.
  const at::Tensor images = byte_images({200, 2, 9, 7});
  const Transforms one_pass{Flip{0}, Shift{3}, Flip{0}, Flip{0.5}};
  const Transforms two_passes{Flip{0}, Shift{3}, Normalise{{0}, {1}}, Flip{0.5}};
  EXPECT_TRUE(at::equal(one_pass.apply(images, seeds(200), true),
                        two_passes.apply(images, seeds(200), true)));
}

TEST(Transforms, RandomStepsRestOutsideTraining) {
  const at::Tensor images = byte_images({20, 1, 6, 6});
  const Transforms random{Flip{1}, Shift{2}, Normalise{{0.1}, {0.9}}};
  EXPECT_TRUE(at::equal(random.apply(images, {}, false),
                        random.deterministic().apply(images, seeds(20), true)));
}

TEST(Transforms, SampleDependsOnItsSeedNotOnItsBatch) {
  const at::Tensor images = byte_images({32, 1, 10, 10});
  const Transforms random{Flip{0.5}, Shift{3}};
  const auto all_seeds = seeds(32);
  const std::span<const uint64_t> all(all_seeds);
  const at::Tensor whole = random.apply(images, all, true);
  std::vector<at::Tensor> parts;
  for (const size_t at : {0U, 7U, 14U, 21U, 28U}) {
    const size_t count = std::min<size_t>(7, 32 - at);
    parts.push_back(
        random.apply(images.narrow(0, static_cast<int64_t>(at), static_cast<int64_t>(count)),
                     all.subspan(at, count), true));
  }
  EXPECT_TRUE(at::equal(at::cat(parts), whole));
}

TEST(Transforms, ApplyRowsEqualsGatherThenApply) {
  const at::Tensor images = byte_images({40, 3, 8, 8});
  const std::vector<int64_t> rows{39, 0, 0, 17, 5};
  const Transforms random{Flip{0.5}, Shift{2}, Normalise{{0.4}, {0.2}}, Resize{5, 5}};
  std::vector<at::Tensor> gathered;
  for (int64_t row : rows) gathered.push_back(images.narrow(0, row, 1));
  EXPECT_TRUE(at::equal(random.apply_rows(images, rows, seeds(5), true),
                        random.apply(at::cat(gathered), seeds(5), true)));
}

TEST(Transforms, WrongTensorsAreRefused) {
  const Transforms none;
  EXPECT_THROW((void)none.apply({}, {}, false), ShapeError);
  EXPECT_THROW((void)none.apply(byte_images({2, 3, 4}), {}, false), ShapeError);
  EXPECT_THROW((void)none.apply(at::rand({1, 1, 2, 2}, at::kDouble), {}, false), ShapeError);
  EXPECT_THROW((void)none.apply(byte_images({2, 3, 4, 5}).transpose(2, 3), {}, false), ShapeError);
  EXPECT_THROW((void)none.apply(byte_images({2, 3, 0, 5}), {}, false), ShapeError);
  EXPECT_THROW((void)Transforms{Flip{}}.apply(byte_images({2, 1, 4, 4}), seeds(1), true),
               ShapeError);
  EXPECT_THROW(
      (void)(Transforms{Normalise{{0, 0}, {1, 1}}}.apply(byte_images({1, 3, 4, 4}), {}, false)),
      ConfigError);
}

}  // namespace
}  // namespace tare
