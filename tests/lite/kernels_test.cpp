// The kernels of each instruction set, against sums in double precision.
#include "tare/lite/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tare::lite {

const Kernels& wide_kernels();

namespace {

using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr float kRelative = 2e-6F;  // of some hundred products in float32

std::vector<float> random_numbers(int64_t count, uint32_t seed, float deviation = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = draw(bits);
  return numbers;
}

/// Whether the processor has the instructions that the kernels are compiled for.
bool runs(const Kernels& kernels) {
#if defined(__x86_64__)
  const std::string name = kernels.name;
  if (name == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (name == "avx512")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  return true;
}

class KernelsTest : public ::testing::TestWithParam<const Kernels* (*)()> {
 protected:
  void SetUp() override {
    if (!runs(kernels)) GTEST_SKIP() << "this processor has no " << kernels.name;
  }
  const Kernels& kernels = *GetParam()();

  /// Returns the panels of a matrix [depth, columns].
  [[nodiscard]] std::vector<float> packed(const std::vector<float>& b, int64_t depth,
                                          int64_t columns) const {
    const int64_t width = (columns + kernels.columns - 1) / kernels.columns * kernels.columns;
    std::vector<float> panels(static_cast<size_t>(depth * width), NAN);
    kernels.pack(b.data(), columns, depth, columns, panels.data());
    return panels;
  }
};

TEST_P(KernelsTest, MultiplyMatricesOfEverySize) {
  for (const int64_t rows : {1, 2, 5, 6, 7, 11, 12, 13, 25})
    for (const int64_t columns : {1, 3, 8, 15, 16, 17, 31, 32, 33, 70})
      for (const int64_t depth : {1, 2, 9, 100}) {
        const auto a = random_numbers(rows * depth, 1), b = random_numbers(depth * columns, 2);
        const auto before = random_numbers(rows * columns, 3);
        for (const bool accumulate : {false, true}) {
          std::vector<float> c = before;
          kernels.multiply(a.data(), depth, rows, packed(b, depth, columns).data(), depth, columns,
                           c.data(), columns, accumulate);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t n = 0; n < columns; ++n) {
              const auto at = static_cast<size_t>(r * columns + n);
              double sum = accumulate ? before[at] : 0, size = std::abs(sum);
              for (int64_t k = 0; k < depth; ++k) {
                const double product = double{a[static_cast<size_t>(r * depth + k)]} *
                                       b[static_cast<size_t>(k * columns + n)];
                sum += product;
                size += std::abs(product);
              }
              ASSERT_NEAR(c[at], sum, size * kRelative)
                  << rows << " x " << depth << " x " << columns << " at " << r << ", " << n;
            }
        }
      }
}

TEST_P(KernelsTest, PackATransposedMatrixAsThatMatrix) {
  for (const int64_t columns : {1, 7, 16, 40}) {
    const int64_t depth = 13;
    const auto b = random_numbers(depth * columns, 1);
    std::vector<float> turned(b.size());
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t n = 0; n < columns; ++n)
        turned[static_cast<size_t>(n * depth + k)] = b[static_cast<size_t>(k * columns + n)];
    const std::vector<float> expected = packed(b, depth, columns);
    std::vector<float> panels(expected.size(), NAN);
    kernels.pack_transposed(turned.data(), depth, depth, columns, panels.data());
    EXPECT_EQ(panels, expected) << columns;
  }
}

TEST_P(KernelsTest, WidenEveryCode) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const auto half = static_cast<uint16_t>(code);
    float bf16 = 0, fp16 = 0;
    kernels.widen(Storage::bf16, &half, 1, 1, &bf16);
    kernels.widen(Storage::fp16, &half, 1, 1, &fp16);
    const auto of_bf16 = std::bit_cast<float>(code << 16);
    ASSERT_TRUE(bf16 == of_bf16 || (std::isnan(bf16) && std::isnan(of_bf16))) << code;
    const int exponent = static_cast<int>(code >> 10 & 31),
              fraction = static_cast<int>(code & 1023);
    float expected = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    if (exponent == 31) expected = fraction == 0 ? INFINITY : NAN;
    if (code >> 15) expected = -expected;
    ASSERT_TRUE(fp16 == expected || (std::isnan(fp16) && std::isnan(expected))) << code;
  }
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    float fp8 = 0, int8 = 0;
    kernels.widen(Storage::fp8, &byte, 1, 0.5F, &fp8);
    kernels.widen(Storage::int8, &byte, 1, 0.5F, &int8);
    EXPECT_EQ(int8, 0.5F * static_cast<float>(static_cast<int8_t>(byte)));
    const int exponent = code >> 3 & 15, fraction = code & 7;
    if (exponent == 15 && fraction == 7) continue;  // a NaN, which no bundle has
    const float expected = exponent == 0
                               ? std::ldexp(static_cast<float>(fraction), -9)
                               : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    EXPECT_EQ(fp8, 0.5F * (code >> 7 ? -expected : expected)) << code;
  }
}

TEST_P(KernelsTest, WidenManyNumbersAsEachAlone) {
  const std::vector<int8_t> codes{-127, -3, 0,  1,  2,  3,  4,  5,   6, 7,
                                  8,    9,  10, 11, 12, 13, 99, 127, 5};
  std::vector<float> wide(codes.size()), expected;
  kernels.widen(Storage::int8, codes.data(), static_cast<int64_t>(codes.size()), 0.25F,
                wide.data());
  for (const int8_t code : codes) expected.push_back(0.25F * static_cast<float>(code));
  EXPECT_EQ(wide, expected);
}

TEST_P(KernelsTest, FindTheDotProduct) {
  for (const int64_t count : {0, 1, 7, 16, 33, 100}) {
    const auto a = random_numbers(count, 1), b = random_numbers(count, 2);
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
    EXPECT_NEAR(kernels.dot(a.data(), b.data(), count), sum, 1e-5) << count;
  }
}

TEST_P(KernelsTest, FinishInEveryOrderOfReluAndResidual) {
  for (const int64_t count : {1, 5, 16, 37})
    for (const bool before : {false, true})
      for (const bool after : {false, true})
        for (const bool adds : {false, true}) {
          std::vector<float> x = random_numbers(count, 1), more = random_numbers(count, 2),
                             expected;
          for (size_t i = 0; i < x.size(); ++i) {
            float value = x[i] * 0.5F + 0.25F;
            if (before) value = std::max(value, 0.0F);
            if (adds) value += more[i];
            expected.push_back(after ? std::max(value, 0.0F) : value);
          }
          kernels.finish(x.data(), count, 0.5F, 0.25F, adds ? more.data() : nullptr, before, after);
          EXPECT_THAT(x, Pointwise(FloatNear(1e-6F), expected)) << count;
        }
}

TEST_P(KernelsTest, LeaveANanThroughRelu) {
  std::vector<float> x{NAN, -1, 2};
  kernels.finish(x.data(), 3, 1, 0, nullptr, true, true);
  EXPECT_TRUE(std::isnan(x[0]));
  EXPECT_EQ(x[1], 0);
  EXPECT_EQ(x[2], 2);
}

TEST_P(KernelsTest, ComputeExponentialsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x, expected;
  for (float value = -87; value < 88; value += 0.037F) x.push_back(value);
  for (const float value : x) expected.push_back(static_cast<float>(std::exp(double{value})));
  kernels.exponential(x.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], expected[i], 2.5 * std::numeric_limits<float>::epsilon() * expected[i]);
}

TEST_P(KernelsTest, LeaveANanThroughExponentials) {
  for (const size_t at : {0U, 5U, 18U}) {
    std::vector<float> numbers(20, 1), weights(20, 1), columns(40, 1);
    numbers[at] = weights[at] = columns[2 * at] = NAN;
    std::vector<float> signs = numbers, smooth = numbers;
    kernels.exponential(numbers.data(), 20);
    kernels.sigmoid(signs.data(), 20);
    kernels.gelu(smooth.data(), 20);
    kernels.softmax(weights.data(), 20, 1);
    kernels.softmax_columns(columns.data(), 20, 2);
    for (size_t i = 0; i < 20; ++i) {
      for (const auto* one : {&numbers, &signs, &smooth})
        EXPECT_EQ(std::isnan((*one)[i]), i == at) << i;
      EXPECT_TRUE(std::isnan(weights[i])) << "the sum is NaN";
      EXPECT_TRUE(std::isnan(columns[2 * i]));
      EXPECT_FALSE(std::isnan(columns[2 * i + 1])) << "of another column";
    }
  }
  std::vector<float> large{88.5F, 100, INFINITY, -INFINITY};
  kernels.exponential(large.data(), 4);
  EXPECT_NEAR(large[0] / std::exp(88.5F), 1, 1e-6);
  EXPECT_TRUE(std::isinf(large[1]));
  EXPECT_TRUE(std::isinf(large[2]));
  EXPECT_NEAR(large[3], 0, 1e-37);
  std::vector<float> infinite{1, INFINITY, 2};
  kernels.softmax(infinite.data(), 3, 1);
  EXPECT_TRUE(std::isnan(infinite[0]) && std::isnan(infinite[1])) << "as LibTorch has it";
}

TEST_P(KernelsTest, ComputeGeluAndSigmoid) {
  for (const int64_t count : {1, 9, 64, 101}) {
    const auto x = random_numbers(count, 4, 3);
    auto gelu = x, sigmoid = x;
    kernels.gelu(gelu.data(), count);
    kernels.sigmoid(sigmoid.data(), count);
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      EXPECT_NEAR(gelu[i], 0.5 * v * (1 + std::tanh(inner)), 1e-6 * (1 + std::abs(v)));
      EXPECT_NEAR(sigmoid[i], 1 / (1 + std::exp(-v)), 3e-7);
    }
  }
}

TEST_P(KernelsTest, ComputeSoftmaxOfRowsAndColumns) {
  for (const int64_t count : {1, 3, 16, 50}) {
    const auto x = random_numbers(count, 5, 10);
    double most = -INFINITY, all = 0;
    for (const float v : x) most = std::max(most, double{v} * 0.5);
    for (const float v : x) all += std::exp(double{v} * 0.5 - most);
    auto row = x;
    kernels.softmax(row.data(), count, 0.5F);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(row[i], std::exp(double{x[i]} * 0.5 - most) / all, 1e-6);
    // The columns of a matrix are each the row, halved.
    for (const int64_t columns : {1, 2, 17}) {
      std::vector<float> matrix;
      for (const float v : x) matrix.insert(matrix.end(), static_cast<size_t>(columns), 0.5F * v);
      kernels.softmax_columns(matrix.data(), count, columns);
      for (size_t i = 0; i < matrix.size(); ++i)
        EXPECT_NEAR(matrix[i], row[i / static_cast<size_t>(columns)], 1e-6);
    }
  }
}

TEST_P(KernelsTest, ComputeLayerNorm) {
  for (const int64_t count : {1, 7, 64, 100}) {
    const auto x = random_numbers(count, 6, 2), weight = random_numbers(count, 7),
               bias = random_numbers(count, 8);
    double mean = 0, variance = 0;
    for (const float v : x) mean += v / static_cast<double>(count);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(count);
    std::vector<float> y(x.size());
    kernels.layer_norm(x.data(), count, weight.data(), bias.data(), 1e-5F, y.data());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i], 1e-5);
  }
}

TEST_P(KernelsTest, Add) {
  auto x = random_numbers(19, 1);
  const auto y = random_numbers(19, 2), before = x;
  kernels.add(x.data(), y.data(), 19);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], before[i] + y[i]);
}

INSTANTIATE_TEST_SUITE_P(Each, KernelsTest,
                         ::testing::Values([] { return &portable_kernels(); },
                                           [] { return &avx2_kernels(); },
                                           [] { return &avx512_kernels(); },
                                           [] { return &wide_kernels(); }),
                         [](const auto& of) { return std::string(of.param()->name); });

TEST(BestKernels, RunOnThisProcessor) { EXPECT_TRUE(runs(best_kernels())); }

}  // namespace
}  // namespace tare::lite
