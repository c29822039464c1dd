// Which library multiplies matrices of float32 on the host. Before main, a program that uses one of
// these functions, as init() and every Learner do, gives aten::mm and aten::addmm host kernels that
// pass to LibTorch what by_onednn() does not name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tare::memory {

/// Names who multiplies.
enum class ProductsBy {
  libtorch,      ///< always LibTorch's choice, MKL
  onednn,        ///< oneDNN where it pays, see by_onednn()
  onednn_always  ///< oneDNN for dense matrices of float32 of any size, to test it with small ones
};

/// Whether LibTorch has oneDNN multiply matrices of float32 on this processor at all, which takes
/// AVX-512 (BW, VL and DQ).
[[nodiscard]] bool onednn_multiplies();

/// Returns who multiplies by default: oneDNN on AMD's processors since Zen 5. They compute 512 bits
/// at once. oneDNN makes use of that, and MKL does so on Intel's processors alone. The variable
/// TARE_PRODUCTS, which names a value of ProductsBy, has the last word. Throws ConfigError for
/// another text, and for oneDNN where onednn_multiplies() is false.
[[nodiscard]] ProductsBy default_products();

/// Whether a * b, of two matrices that may lie on the meta device, is oneDNN's: both are of
/// float32, each lies row by row or column by column without gaps, no side has fewer than 16
/// elements, rows * columns * inner is at least 2^22, and reference_kernels() is off
/// (reference_kernels.h). Smaller products are MKL's, because a call of oneDNN costs more than it
/// gains (bench_products).
[[nodiscard]] bool by_onednn(const at::Tensor& a, const at::Tensor& b);

/// Returns the bytes that oneDNN allocates, and frees, while it computes a * b, added to a matrix
/// or not. They depend on the sizes, the layouts, the instruction set and the threads of operators.
/// Computes a product only if oneDNN wants no bytes for it, and takes address space for it but no
/// memory. `a` and `b` may lie on the meta device; the calling thread must not be in a scope that
/// traces. Throws std::bad_alloc without address space.
[[nodiscard]] int64_t scratch_of_product(const at::Tensor& a, const at::Tensor& b, bool adds);

/// Sets who multiplies in the process, and restores who did. For tests and measurements.
/// oneDNN needs onednn_multiplies().
class ProductsScope {
 public:
  explicit ProductsScope(ProductsBy by);  ///< sets it
  ~ProductsScope();
  ProductsScope(const ProductsScope&) = delete;
  ProductsScope& operator=(const ProductsScope&) = delete;

 private:
  ProductsBy before_;
};

}  // namespace tare::memory
