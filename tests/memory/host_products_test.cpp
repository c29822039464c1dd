// Products of float32 matrices on the host: by whom, with which values and in how many bytes.
#include "tare/memory/host_products.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "support/environment.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/reference_kernels.h"

namespace tare::testing {
namespace {

using at::Tensor;
using memory::by_onednn;
using memory::ProductsBy;
using memory::ProductsScope;

Tensor rows(int64_t height, int64_t width) { return at::randn({height, width}); }
Tensor columns(int64_t height, int64_t width) { return at::randn({width, height}).t(); }

class HostProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!memory::onednn_multiplies()) GTEST_SKIP() << "oneDNN multiplies with AVX-512 only";
  }
};

bool near(const Tensor& got, const Tensor& exact) {
  return at::allclose(got.to(at::kDouble), exact, 1e-4, 1e-3);
}

TEST_F(HostProducts, HaveTheValuesOfFloat64InEveryLayout) {
  const ProductsScope onednn(ProductsBy::onednn);
  for (const auto& first : {&rows, &columns}) {
    for (const auto& second : {&rows, &columns}) {
      const Tensor a = first(160, 300), b = second(300, 100);
      ASSERT_TRUE(by_onednn(a, b));
      const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
      EXPECT_TRUE(near(at::mm(a, b), exact));
      for (const Tensor& to : {at::randn({100}), at::randn({160, 1}), at::randn({160, 100})}) {
        const Tensor added = to.to(at::kDouble);
        EXPECT_TRUE(near(at::addmm(to, a, b), added + exact));
        EXPECT_TRUE(near(at::addmm(to, a, b, 0.5, 2), 0.5 * added + 2 * exact));
        EXPECT_TRUE(near(at::addmm(to, a, b, 0, 2), 2 * exact));
      }
    }
  }
}

TEST_F(HostProducts, OfInputsThatAreNoMatricesAreRefusedByLibTorch) {
  const ProductsScope onednn(ProductsBy::onednn);
  const Tensor a = rows(300, 300);
  EXPECT_THROW(at::mm(a, rows(200, 300)), c10::Error);
  EXPECT_THROW(at::addmm(at::randn({7}), a, a), c10::Error);
  EXPECT_THROW(at::mm(a, a.to(at::kDouble)), c10::Error);
}

TEST_F(HostProducts, AreThoseOfLargeDenseMatricesOfFloat32) {
  const ProductsScope onednn(ProductsBy::onednn);
  const Tensor a = rows(256, 256);
  EXPECT_TRUE(by_onednn(a, a));
  EXPECT_TRUE(by_onednn(a.to(at::kMeta), a.to(at::kMeta)));
  EXPECT_FALSE(by_onednn(rows(64, 64), rows(64, 64)));       // small
  EXPECT_FALSE(by_onednn(rows(8, 4096), rows(4096, 4096)));  // a side of less than 16
  EXPECT_FALSE(by_onednn(rows(256, 512).slice(1, 0, 256), a));
  EXPECT_FALSE(by_onednn(at::randn({1, 256}).expand({256, 256}), a));
  EXPECT_FALSE(by_onednn(a.to(at::kBFloat16), a.to(at::kBFloat16)));
  const ProductsScope libtorch(ProductsBy::libtorch);
  EXPECT_FALSE(by_onednn(a, a));
}

TEST_F(HostProducts, HaveLibTorchsBitsWithReferenceKernels) {
  const Tensor a = rows(300, 300), b = columns(300, 300);
  const Tensor expected = [&] {
    const ProductsScope libtorch(ProductsBy::libtorch);
    return at::mm(a, b);
  }();
  const ProductsScope onednn(ProductsBy::onednn);
  memory::set_reference_kernels(true);
  const Tensor got = at::mm(a, b);
  memory::set_reference_kernels(false);
  EXPECT_TRUE(at::equal(got, expected));
}

TEST_F(HostProducts, TakeTheBytesThatAreForetold) {
  const ProductsScope onednn(ProductsBy::onednn);
  for (const auto& [height, inner, width] :
       {std::array<int64_t, 3>{128, 512, 512}, {1024, 192, 65}, {100, 300, 500}, {17, 2048, 640}}) {
    for (const auto& first : {&rows, &columns}) {
      for (const auto& second : {&rows, &columns}) {
        const Tensor a = first(height, inner), b = second(inner, width);
        const Tensor to = at::randn({width});
        const int64_t result = height * width * int64_t{sizeof(float)};
        for (const bool adds : {false, true}) {
          const int64_t scratch = memory::scratch_of_product(a.to(at::kMeta), b, adds);
          const memory::PeakScope peak(c10::kCPU);
          static_cast<void>(adds ? at::addmm(to, a, b) : at::mm(a, b));
          EXPECT_EQ(peak.peak_above_start_bytes(), result + scratch)
              << height << ' ' << inner << ' ' << width << ' ' << adds;
        }
      }
    }
  }
}

TEST(HostProductsChoice, IsMadeByAVariable) {
  const ScopedVariable libtorch("TARE_PRODUCTS", "libtorch");
  EXPECT_EQ(memory::default_products(), ProductsBy::libtorch);
  for (const auto& [name, by] : {std::pair("onednn", ProductsBy::onednn),
                                 std::pair("onednn_always", ProductsBy::onednn_always)}) {
    const ScopedVariable onednn("TARE_PRODUCTS", name);
    if (memory::onednn_multiplies())
      EXPECT_EQ(memory::default_products(), by);
    else
      EXPECT_THROW(static_cast<void>(memory::default_products()), ConfigError);
  }
  const ScopedVariable wrong("TARE_PRODUCTS", "mkl");
  try {
    static_cast<void>(memory::default_products());
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "[environment] TARE_PRODUCTS is not known, got mkl; allowed: libtorch, onednn, "
                 "onednn_always");
  }
}

}  // namespace
}  // namespace tare::testing
