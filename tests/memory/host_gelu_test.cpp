// GELU by tanh on the host: values, and what stays LibTorch's.
#include "tare/memory/host_gelu.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tare/memory/reference_kernels.h"

namespace tare::testing {
namespace {

using at::Tensor;

class ReferenceScope {
 public:
  ReferenceScope() { memory::set_reference_kernels(true); }
  ~ReferenceScope() { memory::set_reference_kernels(false); }
  ReferenceScope(const ReferenceScope&) = delete;
  ReferenceScope& operator=(const ReferenceScope&) = delete;
};

struct Results {
  Tensor value, gradient;
};

Results by(const char* approximate, const Tensor& x, const Tensor& above) {
  return {at::gelu(x, approximate), at::gelu_backward(above, x, approximate)};
}

Results by_reference(const char* approximate, const Tensor& x, const Tensor& above) {
  const ReferenceScope reference;
  return by(approximate, x, above);
}

bool are_equal(const Results& one, const Results& other) {
  return at::equal(one.value, other.value) && at::equal(one.gradient, other.gradient) &&
         one.value.strides() == other.value.strides() &&
         one.gradient.strides() == other.gradient.strides();
}

double error(const Tensor& got, const Tensor& exact, const Tensor& x) {
  return ((got.to(at::kDouble) - exact).abs() / (1 + x.to(at::kDouble).abs())).max().item<double>();
}

class HostGelu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!memory::has_own_gelu()) GTEST_SKIP() << "Tare's GELU takes AVX2 and FMA";
  }
};

// 1,000,003 is a multiple of no vector.
TEST_F(HostGelu, HasTheValuesOfFloat64) {
  const Tensor x = at::cat({at::linspace(-15, 15, 1'000'003), at::randn({1000}) * 1e3});
  const Tensor above = at::randn_like(x);
  const Results own = by("tanh", x, above);
  const Tensor exact_x = x.to(at::kDouble), exact_above = above.to(at::kDouble);
  EXPECT_LT(error(own.value, at::gelu(exact_x, "tanh"), x), 2e-7);
  EXPECT_LT(error(at::gelu_backward(at::ones_like(x), x, "tanh"),
                  at::gelu_backward(at::ones_like(exact_x), exact_x, "tanh"), x),
            1e-6);
  EXPECT_LT(error(own.gradient, at::gelu_backward(exact_above, exact_x, "tanh"), x), 3e-6);
  EXPECT_FALSE(are_equal(own, by_reference("tanh", x, above)));  // or LibTorch computed both
}

TEST_F(HostGelu, HasTheLimitsOfTheFunctionFarFromZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = at::tensor({-3e38F, -1e20F, -20.0F, 0.0F, 20.0F, 1e20F, 3e38F, infinity});
  const Tensor value = at::gelu(x, "tanh");
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(value[i].item<float>(), 0);
  for (int64_t i = 3; i < x.numel(); ++i) EXPECT_EQ(value[i].item<float>(), x[i].item<float>());
  const Tensor slopes = at::gelu_backward(at::ones({3}), at::tensor({-20.0F, 0.0F, 20.0F}), "tanh");
  EXPECT_TRUE(at::equal(slopes, at::tensor({0.0F, 0.5F, 1.0F})));
  EXPECT_TRUE(std::isnan(
      at::gelu(at::tensor(std::numeric_limits<float>::quiet_NaN()), "tanh").item<float>()));
}

TEST_F(HostGelu, DoesNotDependOnThreads) {
  const Tensor x = at::randn({3, 100'001}), above = at::randn({3, 100'001});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Results alone = by("tanh", x, above);
  at::set_num_threads(2);
  EXPECT_TRUE(are_equal(alone, by("tanh", x, above)));
  at::set_num_threads(before);
}

TEST_F(HostGelu, LeavesOtherCallsToLibTorch) {
  const Tensor x = at::randn({64, 48}), above = at::randn({64, 48});
  const auto expect_equal = [](const char* approximate, const Tensor& of, const Tensor& gradient) {
    EXPECT_TRUE(are_equal(by(approximate, of, gradient), by_reference(approximate, of, gradient)))
        << approximate << ' ' << of.toString() << ' ' << of.sizes();
  };
  expect_equal("none", x, above);
  expect_equal("tanh", x.t(), above.t());
  expect_equal("tanh", x.to(at::kDouble), above.to(at::kDouble));
  expect_equal("tanh", x.to(at::kBFloat16), above.to(at::kBFloat16));
  expect_equal("tanh", at::randn({0, 4}), at::randn({0, 4}));
  const Tensor wide = at::gelu_backward(above, at::randn({1, 48}).expand({64, 48}), "tanh");
  EXPECT_EQ(wide.sizes(), x.sizes());
  EXPECT_ANY_THROW((void)at::gelu(x, "cubic"));
}

}  // namespace
}  // namespace tare::testing
