// Rotation and zoom against grid_sample.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "tare/base/error.h"
#include "tare/transform/random.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

constexpr double kSampleRounding =
    2e-5;  // sample points differ by some float32 roundings of [0, 15]

std::vector<uint64_t> affine_seeds(int64_t count) {
  std::vector<uint64_t> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(derive_seed(9, static_cast<uint64_t>(i)));
  return result;
}

// The sampling matrices that ATen's affine_grid takes, from the documented draws.
at::Tensor matrices(const Affine& affine, size_t place, int64_t height, int64_t width,
                    const std::vector<uint64_t>& sample_seeds) {
  std::vector<at::Tensor> all;
  for (const uint64_t seed : sample_seeds) {
    RandomBits bits(derive_seed(seed, place));
    const auto degrees = static_cast<float>(affine.degrees), zoom = static_cast<float>(affine.zoom);
    const float angle = bits.uniform(-degrees, degrees) * std::numbers::pi_v<float> / 180;
    const float factor = bits.uniform(1 - zoom, 1 + zoom);
    const float c = std::cos(angle) / factor, s = std::sin(angle) / factor;
    const float aspect = static_cast<float>(height) / static_cast<float>(width);
    all.push_back(at::tensor({c, -s * aspect, 0.0F, s / aspect, c, 0.0F}).view({2, 3}));
  }
  return at::stack(all);
}

TEST(Affine, EqualsGridSampleOfTheSameDraws) {
  const at::Tensor images = at::randint(0, 256, {24, 2, 12, 16}, at::kByte);
  const Affine affine{35, 0.25};
  const at::Tensor got = Transforms{affine}.apply(images, affine_seeds(24), true);
  const at::Tensor grid = at::affine_grid_generator(matrices(affine, 0, 12, 16, affine_seeds(24)),
                                                    {24, 2, 12, 16}, false);
  const at::Tensor expected = at::grid_sampler_2d(images.to(at::kFloat) / 255, grid, 0, 0, false);
  EXPECT_LE((got - expected).abs().max().item<double>(), kSampleRounding);
  EXPECT_GT((got - images.to(at::kFloat) / 255).abs().mean().item<double>(), 0.05);
}

TEST(Affine, OfNothingIsTheImageItself) {
  const at::Tensor images = at::randint(0, 256, {5, 1, 7, 9}, at::kByte);
  const at::Tensor plain = Transforms{}.apply(images, {}, false);
  EXPECT_TRUE(at::equal(Transforms{(Affine{0, 0})}.apply(images, affine_seeds(5), true), plain));
  EXPECT_TRUE(at::equal(Transforms{(Affine{30, 0.2})}.apply(images, {}, false), plain));
}

TEST(Affine, IsAPassOfItsOwnAmongOtherSteps) {
  const at::Tensor images = at::randint(0, 256, {16, 1, 10, 10}, at::kByte);
  const Normalise normalise{{0.2}, {0.5}};
  const Transforms together{Flip{0.5}, Shift{1}, Affine{20, 0.1}, normalise, Resize{8, 8}};
  const auto s = affine_seeds(16);
  const at::Tensor moved = Transforms{Flip{0.5}, Shift{1}}.apply(images, s, true);
  // The step is third in the list: two that change nothing keep its place.
  const at::Tensor turned = Transforms{Flip{0}, Flip{0}, Affine{20, 0.1}}.apply(moved, s, true);
  const at::Tensor expected = Transforms{normalise, Resize{8, 8}}.apply(turned, s, true);
  EXPECT_LE((together.apply(images, s, true) - expected).abs().max().item<double>(),
            kSampleRounding);
  EXPECT_EQ(together.deterministic(), (Transforms{normalise, Resize{8, 8}}));
}

TEST(Affine, RefusesAnglesAndZoomsOutOfRange) {
  EXPECT_THROW(Transforms{(Affine{181, 0})}, ConfigError);
  EXPECT_THROW(Transforms{(Affine{-1, 0})}, ConfigError);
  EXPECT_THROW(Transforms{(Affine{0, 0.95})}, ConfigError);
}

}  // namespace
}  // namespace tare
