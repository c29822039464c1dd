// Layers against their definitions in double precision, with any number of threads.
#include "tare/lite/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace tare::lite {
namespace {

constexpr double kNear = 1e-4;  // of sums of some hundred products of numbers of size 1

Floats random_floats(int64_t count, uint32_t seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> draw;
  Floats numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers.get()[i] = draw(bits);
  return numbers;
}

Planes random_planes(int64_t channels, int64_t height, int64_t width, uint32_t seed) {
  return {channels, height, width, random_floats(channels * height * width, seed)};
}

/// Returns the sum at one place of a convolution.
double convolved(const Planes& in, const float* weight, const Window& window, int64_t out,
                 int64_t y, int64_t x) {
  double sum = 0;
  for (int64_t c = 0; c < in.channels; ++c)
    for (int64_t ky = 0; ky < window.size; ++ky)
      for (int64_t kx = 0; kx < window.size; ++kx) {
        const int64_t row = y * window.stride + ky - window.padding,
                      column = x * window.stride + kx - window.padding;
        if (row < 0 || row >= in.height || column < 0 || column >= in.width) continue;
        sum += double{in.values.get()[(c * in.height + row) * in.width + column]} *
               weight[((out * in.channels + c) * window.size + ky) * window.size + kx];
      }
  return sum;
}

TEST(ConvolutionTest, IsItsDefinitionForEveryWindow) {
  for (const int64_t threads : {1, 3}) {
    Engine engine(best_kernels(), threads);
    for (const Window& window : {Window{1, 1, 0}, Window{1, 2, 0}, Window{3, 1, 1}, Window{3, 2, 1},
                                 Window{7, 2, 3}, Window{2, 2, 0}, Window{5, 3, 4}})
      for (const auto& [height, width] :
           {std::pair<int64_t, int64_t>{7, 7}, {8, 13}, {30, 21}, {7, 50}}) {
        const Planes in = random_planes(5, height, width, 1);
        const int64_t out_channels = 9, taps = 5 * window.size * window.size;
        const Floats weight = random_floats(out_channels * taps, 2);
        const Planes out =
            convolve(engine, in, matrix_on(weight.get(), out_channels, taps, taps), window, {});
        ASSERT_EQ(out.height, window.places(height));
        ASSERT_EQ(out.width, window.places(width));
        for (int64_t c = 0; c < out_channels; ++c)
          for (int64_t y = 0; y < out.height; ++y)
            for (int64_t x = 0; x < out.width; ++x)
              ASSERT_NEAR(out.values.get()[(c * out.height + y) * out.width + x],
                          convolved(in, weight.get(), window, c, y, x), kNear)
                  << window.size << " by " << window.stride << " on " << height << " x " << width;
      }
  }
}

TEST(ConvolutionTest, IsFollowedByNormResidualAndRelu) {
  Engine engine(best_kernels(), 2);
  const Planes in = random_planes(300, 9, 9, 1), residual = random_planes(4, 9, 9, 2);
  const Floats weight = random_floats(4 * 2700, 3);
  const ChannelScale norm{{0.1F, 0.2F, 0.3F, 0.4F}, {1, -1, 2, -2}};
  const Matrix matrix = matrix_on(weight.get(), 4, 2700, 2700);
  const Window window{3, 1, 1};
  const Planes plain = convolve(engine, in, matrix, window, {});
  for (const bool before : {false, true}) {
    const Planes out = convolve(
        engine, in, matrix, window,
        {.norm = &norm, .residual = &residual, .relu_before = before, .relu_after = !before});
    for (int64_t i = 0; i < 4 * 81; ++i) {
      const auto c = static_cast<size_t>(i / 81);
      double value = double{plain.values.get()[i]} * norm.scale[c] + norm.shift[c];
      if (before) value = std::max(value, 0.0);
      value += residual.values.get()[i];
      if (!before) value = std::max(value, 0.0);
      EXPECT_NEAR(out.values.get()[i], value, 1e-4);
    }
  }
}

TEST(MaxPoolTest, TakesTheLargestAndLeavesPaddingOut) {
  Engine engine(best_kernels(), 2);
  const Planes in = random_planes(3, 8, 11, 1);
  for (int64_t i = 0; i < 3 * 88; ++i) in.values.get()[i] -= 100;  // below the padding's zero
  const Planes out = max_pool(engine, in, {3, 2, 1});
  ASSERT_EQ(out.height, 4);
  ASSERT_EQ(out.width, 6);
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < 4; ++y)
      for (int64_t x = 0; x < 6; ++x) {
        float most = -1000;
        for (int64_t row = std::max<int64_t>(2 * y - 1, 0); row < std::min<int64_t>(2 * y + 2, 8);
             ++row)
          for (int64_t column = std::max<int64_t>(2 * x - 1, 0);
               column < std::min<int64_t>(2 * x + 2, 11); ++column)
            most = std::max(most, in.values.get()[(c * 8 + row) * 11 + column]);
        EXPECT_EQ(out.values.get()[(c * 4 + y) * 6 + x], most);
      }
}

TEST(LinearTest, IsItsDefinitionForFewAndManyRows) {
  for (const int64_t threads : {1, 2})
    for (const int64_t rows : {1, 3, 4, 70}) {
      Engine engine(best_kernels(), threads);
      const int64_t in = 300, out = 130;
      const Floats x = random_floats(rows * in, 1), weight = random_floats(out * in, 2),
                   bias = random_floats(out, 3), y(rows * out);
      for (const bool relu : {false, true}) {
        linear(engine, x.get(), rows, matrix_on(weight.get(), out, in, in), bias.get(), relu,
               y.get());
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t o = 0; o < out; ++o) {
            double sum = bias.get()[o];
            for (int64_t i = 0; i < in; ++i)
              sum += double{x.get()[r * in + i]} * weight.get()[o * in + i];
            ASSERT_NEAR(y.get()[r * out + o], relu ? std::max(sum, 0.0) : sum, kNear);
          }
      }
    }
}

TEST(LinearTest, WidensRowsThatAreStoredInEightBits) {
  Engine engine(best_kernels(), 2);
  const int64_t in = 600, out = 37, rows = 9;  // longer than a block, not whole tiles
  std::vector<int8_t> codes(static_cast<size_t>(in * out));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int8_t>((i * 37) % 255 - 127);
  std::vector<float> scales(static_cast<size_t>(in)), bias(static_cast<size_t>(in), 0.5F);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.001F * static_cast<float>(i + 1);
  const Floats x = random_floats(rows * in, 1), y(rows * out), z(rows * out);
  const auto* data = reinterpret_cast<const std::byte*>(codes.data());
  const auto value = [&](int64_t row, int64_t column, int64_t columns) {
    return double{static_cast<float>(codes[static_cast<size_t>(row * columns + column)])} *
           scales[static_cast<size_t>(row)];
  };
  linear(engine, x.get(), rows, {data, Storage::int8, scales.data(), out, in, in}, bias.data(),
         false, y.get());
  linear_of_columns(engine, x.get(), rows, {data, Storage::int8, scales.data(), in, out, out},
                    bias.data(), z.get());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < out; ++o) {
      double of_rows = 0.5, of_columns = 0.5, size = 1;
      for (int64_t i = 0; i < in; ++i) {
        of_rows += x.get()[r * in + i] * value(o, i, in);
        of_columns += x.get()[r * in + i] * value(i, o, out);
        size += std::abs(x.get()[r * in + i] * value(i, o, out));
      }
      ASSERT_NEAR(y.get()[r * out + o], of_rows, size * 2e-6);
      ASSERT_NEAR(z.get()[r * out + o], of_columns, size * 2e-6);
    }
}

TEST(AttentionTest, SeesTheTokensBeforeAndNoneBehind) {
  for (const int64_t threads : {1, 3})
    for (const int64_t tokens : {1, 5, 24, 25, 70}) {
      Engine engine(best_kernels(), threads);
      const int64_t heads = 3, size = 20, width = heads * size;
      const Floats qkv = random_floats(tokens * 3 * width, 1), out(tokens * width);
      attend(engine, qkv.get(), tokens, width, heads, out.get());
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < tokens; ++t) {
          const auto part = [&](int64_t token, int64_t which, int64_t i) {
            return double{qkv.get()[token * 3 * width + which * width + h * size + i]};
          };
          std::vector<double> weights;
          double all = 0;
          for (int64_t s = 0; s <= t; ++s) {
            double score = 0;
            for (int64_t i = 0; i < size; ++i) score += part(t, 0, i) * part(s, 1, i);
            weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
            all += weights.back();
          }
          for (int64_t i = 0; i < size; ++i) {
            double sum = 0;
            for (int64_t s = 0; s <= t; ++s)
              sum += weights[static_cast<size_t>(s)] / all * part(s, 2, i);
            ASSERT_NEAR(out.get()[t * width + h * size + i], sum, 1e-5) << tokens << " at " << t;
          }
        }
    }
}

TEST(LayersTest, GiveEqualBitsWithAnyNumberOfThreads) {
  const Planes in = random_planes(70, 33, 31, 1);
  const Floats weight = random_floats(50 * 630, 2);
  const int64_t count = 50 * 33 * 31;
  Planes first;
  for (const int64_t threads : {1, 2, 4}) {
    Engine engine(best_kernels(), threads);
    Planes out = convolve(engine, in, matrix_on(weight.get(), 50, 630, 630), {3, 1, 1}, {});
    if (threads > 1)
      EXPECT_EQ(std::memcmp(out.values.get(), first.values.get(), sizeof(float) * count), 0);
    else
      first = std::move(out);
  }
}

}  // namespace
}  // namespace tare::lite
