// Host kernels of aten::mm and aten::addmm that ask oneDNN where MKL is the slower one.
#include "tare/memory/host_products.h"

#include <ATen/Config.h>
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <c10/util/Exception.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/host_allocator.h"

namespace at::native {
// Computes result = beta * result + alpha * a * b by oneDNN; of LibTorch, which has no header for
// it in its package.
TORCH_API void mkldnn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& result,
                             float beta, float alpha);
}  // namespace at::native

namespace tare::memory {
namespace {

using at::Tensor;

constexpr int64_t kLeastSide = 16, kLeastWork = int64_t{1} << 22;

std::atomic<ProductsBy>& products() {
  static std::atomic<ProductsBy> by{default_products()};
  return by;
}

std::atomic<bool> reference{false};

/// Whether oneDNN uses AVX-512 where MKL does not, and the processor computes 512 bits at once.
bool mkl_knows_less_of_the_processor() {
#if defined(__x86_64__)
  if (!at::hasMKL() || !at::hasMKLDNN()) return false;
  if (!__builtin_cpu_is("amd") || !__builtin_cpu_supports("avx512f")) return false;
  constexpr unsigned kZen5 = 0x1a;
  unsigned version = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &version, &b, &c, &d) == 0) return false;
  const unsigned family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
  if (family < kZen5) return false;
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    if (const char* isa = std::getenv(name)) return std::string(isa).starts_with("AVX512");
  return true;
#else
  return false;
#endif
}

/// Whether a matrix lies row by row or column by column, without gaps.
bool is_dense(const Tensor& matrix) {
  return matrix.is_contiguous() || (matrix.stride(0) == 1 && matrix.stride(1) == matrix.size(0));
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (!by_onednn(a, b)) return at::cpu::mm(a, b);
  Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  at::native::mkldnn_matmul(a, b, result, 0, 1);
  return result;
}

Tensor addmm(const Tensor& to, const Tensor& a, const Tensor& b, const at::Scalar& beta,
             const at::Scalar& alpha) {
  const bool fits = to.scalar_type() == at::kFloat && to.device().is_cpu() && by_onednn(a, b) &&
                    at::is_expandable_to(to.sizes(), {a.size(0), b.size(1)});
  if (!fits) return at::cpu::addmm(to, a, b, beta, alpha);
  Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  const auto share = beta.to<float>();
  if (share != 0) result.copy_(to);
  at::native::mkldnn_matmul(a, b, result, share, alpha.to<float>());
  return result;
}

/// LibTorch warns, once, that its kernels are replaced.
class WithoutWarnings final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

ProductsBy default_products() {
  const char* const named = std::getenv("TARE_PRODUCTS");
  if (!named || !*named)
    return mkl_knows_less_of_the_processor() ? ProductsBy::onednn : ProductsBy::libtorch;
  const std::string name = named;
  if (name != "libtorch" && name != "onednn")
    throw ConfigError("environment", "TARE_PRODUCTS", "is not known", "libtorch, onednn",
                      printable(name));
  return name == "onednn" ? ProductsBy::onednn : ProductsBy::libtorch;
}

void install_host_products() {
  static Immortal<torch::Library> library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU,
                                          __FILE__, uint32_t{__LINE__});
  static const bool registered = [] {
    WithoutWarnings none;
    const c10::WarningUtils::WarningHandlerGuard quiet(&none);
    library->impl("mm", &mm);
    library->impl("addmm", &addmm);
    return true;
  }();
  static_cast<void>(registered);
}

bool reference_kernels() { return reference.load(std::memory_order_relaxed); }
void set_reference_kernels(bool on) { reference = on; }

bool by_onednn(const Tensor& a, const Tensor& b) {
  if (products().load(std::memory_order_relaxed) != ProductsBy::onednn || reference_kernels())
    return false;
  if (a.scalar_type() != at::kFloat || b.scalar_type() != at::kFloat || a.dim() != 2 ||
      b.dim() != 2 || a.size(1) != b.size(0))
    return false;
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  return std::min({rows, inner, columns}) >= kLeastSide && rows * inner * columns >= kLeastWork &&
         is_dense(a) && is_dense(b) && at::globalContext().userEnabledMkldnn();
}

int64_t scratch_of_product(const Tensor& a, const Tensor& b, bool adds) {
  static float nowhere = 0;  // is neither read nor written
  const auto without_memory = [](at::IntArrayRef sizes, at::IntArrayRef strides) {
    return at::from_blob(&nowhere, sizes, strides, at::TensorOptions(at::kFloat));
  };
  const Tensor first = without_memory(a.sizes(), a.strides());
  const Tensor second = without_memory(b.sizes(), b.strides());
  const Tensor result = without_memory({a.size(0), b.size(1)}, {b.size(1), 1});
  return host_allocator::first_request(
      [&] { at::native::mkldnn_matmul(first, second, result, adds ? 1 : 0, 1); });
}

ProductsScope::ProductsScope(ProductsBy by) : before_(products().exchange(by)) {}
ProductsScope::~ProductsScope() { products() = before_; }

}  // namespace tare::memory
