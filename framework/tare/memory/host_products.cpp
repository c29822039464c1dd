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
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/host_kernels.h"
#include "tare/memory/reference_kernels.h"

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
  return onednn_multiplies();  // LibTorch and oneDNN may be told to use less of the processor
#else
  return false;
#endif
}

/// Whether a matrix lies row by row or column by column, without gaps.
bool is_dense(const Tensor& matrix) {
  return matrix.is_contiguous() || (matrix.stride(0) == 1 && matrix.stride(1) == matrix.size(0));
}

/// Returns a matrix of zeros whose pages exist once they are written to.
Tensor reserved(at::IntArrayRef sizes, at::IntArrayRef strides) {
  const auto bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * sizeof(float);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return at::from_blob(
      pages, sizes, strides, [bytes](void* of) { ::munmap(of, bytes); },
      at::TensorOptions(at::kFloat));
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

bool install_products() {
  set_host_kernel("mm", &mm);
  set_host_kernel("addmm", &addmm);
  return true;
}
[[maybe_unused]] const bool products_in_force_before_main = install_products();

}  // namespace

bool onednn_multiplies() {
  static const bool multiplies = [] {
    const Tensor small = reserved({kLeastSide, kLeastSide}, {kLeastSide, 1});
    try {
      static_cast<void>(scratch_of_product(small, small, /*adds=*/false));
    } catch (const c10::Error&) {
      return false;
    }
    return true;
  }();
  return multiplies;
}

ProductsBy default_products() {
  const char* const named = std::getenv("TARE_PRODUCTS");
  if (!named || !*named)
    return mkl_knows_less_of_the_processor() ? ProductsBy::onednn : ProductsBy::libtorch;
  const std::string name = named;
  if (name == "libtorch") return ProductsBy::libtorch;
  if (name != "onednn" && name != "onednn_always")
    throw ConfigError("environment", "TARE_PRODUCTS", "is not known",
                      "libtorch, onednn, onednn_always", printable(name));
  if (!onednn_multiplies())
    throw ConfigError("environment", "TARE_PRODUCTS",
                      "names oneDNN, which multiplies float32 only on processors with AVX-512",
                      "libtorch", printable(name));
  return name == "onednn" ? ProductsBy::onednn : ProductsBy::onednn_always;
}

bool by_onednn(const Tensor& a, const Tensor& b) {
  const ProductsBy by = products().load(std::memory_order_relaxed);
  if (by == ProductsBy::libtorch || reference_kernels()) return false;
  if (a.scalar_type() != at::kFloat || b.scalar_type() != at::kFloat || a.dim() != 2 ||
      b.dim() != 2 || a.size(1) != b.size(0))
    return false;
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  const int64_t side = std::min({rows, inner, columns}), work = rows * inner * columns;
  const bool pays = side >= kLeastSide && work >= kLeastWork;
  return (pays || (by == ProductsBy::onednn_always && work > 0)) && is_dense(a) && is_dense(b) &&
         at::globalContext().userEnabledMkldnn();
}

int64_t scratch_of_product(const Tensor& a, const Tensor& b, bool adds) {
  const Tensor first = reserved(a.sizes(), a.strides()), second = reserved(b.sizes(), b.strides());
  const Tensor result = reserved({a.size(0), b.size(1)}, {b.size(1), 1});
  return host_allocator::first_request(  // a product that asks for nothing is computed
      [&] { at::native::mkldnn_matmul(first, second, result, adds ? 1 : 0, 1); });
}

ProductsScope::ProductsScope(ProductsBy by) : before_(products().exchange(by)) {}
ProductsScope::~ProductsScope() { products() = before_; }

}  // namespace tare::memory
