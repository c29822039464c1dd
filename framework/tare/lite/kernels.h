// The kernels of the engine without LibTorch: one table of functions for each instruction set.
//
// The matrix product follows Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008): the right matrix is packed into panels of a few columns, and a tile of
// the result stays in registers while it runs down a panel. The left matrix is read where it lies.
// The order of summation depends on the sizes alone, so that equal inputs give equal bits on a
// machine.
#pragma once

#include <cstdint>

namespace tare::lite {

/// Names how numbers are stored.
enum class Storage : int32_t { f32, bf16, fp16, fp8, int8 };

/// Holds the kernels that one instruction set has. Every pointer is to float32 in memory unless it
/// says otherwise, needs no alignment, and must not overlap another one. No function allocates or
/// throws.
struct Kernels {
  const char* name;  ///< "avx512", "avx2" or "portable"
  int64_t columns;   ///< of a panel

  /// Adds the product of `a`, [rows, depth] with `a_stride` numbers from row to row, and of panels
  /// [depth, columns] to `c`, [rows, columns] with `c_stride`. `accumulate`: false sets c instead.
  void (*multiply)(const float* a, int64_t a_stride, int64_t rows, const float* panels,
                   int64_t depth, int64_t columns, float* c, int64_t c_stride, bool accumulate);
  /// Packs a matrix [depth, columns] with `stride` numbers from row to row into panels. The columns
  /// that are missing in the last panel are 0.
  void (*pack)(const float* b, int64_t stride, int64_t depth, int64_t columns, float* panels);
  /// Packs the transpose of a matrix [columns, depth].
  void (*pack_transposed)(const float* b, int64_t stride, int64_t depth, int64_t columns,
                          float* panels);
  /// Packs one row [columns] of a matrix whose panels are `depth` rows long.
  void (*pack_row)(const float* row, int64_t depth, int64_t columns, float* panels);
  /// Returns the sum of the products of two vectors.
  float (*dot)(const float* a, const float* b, int64_t count);
  /// Converts stored numbers to float32, each times `scale`.
  void (*widen)(Storage storage, const void* from, int64_t count, float scale, float* to);
  /// Sets x = x * scale + shift, then adds `residual` where it is not null, with ReLU before or
  /// after that.
  void (*finish)(float* x, int64_t count, float scale, float shift, const float* residual,
                 bool relu_before, bool relu_after);
  /// Sets x = x + y.
  void (*add)(float* x, const float* y, int64_t count);
  /// Sets x to GELU(x) by the approximation with tanh (Hendrycks and Gimpel 2016).
  void (*gelu)(float* x, int64_t count);
  /// Sets x to the softmax of x * scale.
  void (*softmax)(float* x, int64_t count, float scale);
  /// Sets each column of x, [rows, columns], to its softmax.
  void (*softmax_columns)(float* x, int64_t rows, int64_t columns);
  /// Sets x to 1 / (1 + e^-x).
  void (*sigmoid)(float* x, int64_t count);
  /// Sets x to e^x.
  void (*exponential)(float* x, int64_t count);
  /// Writes the layer norm of x (Ba et al. 2016) to `to`.
  void (*layer_norm)(const float* x, int64_t count, const float* weight, const float* bias,
                     float epsilon, float* to);
};

/// Returns the kernels for every processor.
[[nodiscard]] const Kernels& portable_kernels();
/// Returns those for processors with AVX2 and FMA; on another architecture the portable ones.
[[nodiscard]] const Kernels& avx2_kernels();
/// Returns those for processors with AVX-512F; on another architecture the portable ones.
[[nodiscard]] const Kernels& avx512_kernels();
/// Returns the fastest kernels that this processor runs.
[[nodiscard]] const Kernels& best_kernels();

}  // namespace tare::lite
