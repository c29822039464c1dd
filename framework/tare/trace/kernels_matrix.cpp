// Products of matrices. The host's gemm takes an operand whose rows or columns are next to each
// other as it is, and others in a copy.
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tare/memory/host_products.h"
#include "tare/trace/allocation_trace.h"
#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/measurements.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr int64_t kOneDnnProduct = 3;  // of a key, whose first number is another one elsewhere

/// Columns are next to each other: element (i, j) is at i + j * ld, ld >= rows.
bool column_major(const Tensor& matrix, int64_t row, int64_t column, int64_t rows) {
  return matrix.stride(row) == 1 && matrix.stride(column) >= std::max<int64_t>(1, rows);
}

bool gemm_takes(const Tensor& matrix) {
  return column_major(matrix, 0, 1, matrix.size(0)) || column_major(matrix, 1, 0, matrix.size(1));
}

c10::DataPtr copied(const Tensor& matrix) {
  return hold(gemm_takes(matrix) ? 0 : bytes_of(matrix.numel(), matrix.scalar_type()));
}

/// Holds what is held while a * b is computed.
void run_product(const Tensor& a, const Tensor& b, ProductBy by = ProductBy::either) {
  if (a.numel() == 0 || b.numel() == 0) return;
  // The transposed product is computed, so b comes first.
  const c10::DataPtr second = copied(b), first = copied(a);
  note_product(by);
}

/// Returns the bytes that oneDNN holds while it computes a * b. A process asks it once for each
/// product, because that takes a millisecond.
int64_t scratch_of(const Tensor& a, const Tensor& b, bool adds) {
  Measurements::Key key{kOneDnnProduct, adds ? 1 : 0, at::get_num_threads()};
  append(key, Layout::of(a));
  append(key, Layout::of(b));
  const AllocationTrace scratch = measurements().of(key, [&] {
    const OnTheHost on_the_host;
    const int64_t bytes = memory::scratch_of_product(a, b, adds);
    return AllocationTrace{.steps = {{.bytes = bytes}, {}}};
  });
  return scratch.steps.front().bytes;
}

/// A card adds a bias within the product, by cublasLt.
bool adds_bias(const Tensor& bias, const Tensor& b) {
  return bias.dim() == 1 && bias.is_contiguous() && b.size(0) > 1 && b.size(1) > 1;
}

/// Computes a product; `First` is the index of the operand that is the first matrix.
template <size_t First>
void product(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor a = operands[First].toTensor(), b = operands[First + 1].toTensor();
  const bool has_bias = First == 1 && adds_bias(operands[0].toTensor(), b);
  op.redispatchBoxed(keys, stack);
  if (!for_card() && memory::by_onednn(a, b)) {
    const bool adds = First == 1 && operands[3].toScalar().toDouble() != 0;
    const c10::DataPtr scratch = hold(scratch_of(a, b, adds));
    return;
  }
  run_product(a, b, has_bias ? ProductBy::cublaslt : ProductBy::either);
}

/// Computes the product of a matrix and a vector. A card copies a vector that is one number.
void vector_product(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor matrix = operands[0].toTensor(), vector = operands[1].toTensor();
  op.redispatchBoxed(keys, stack);
  const bool copies = for_card() && matrix.numel() != 0 && vector.stride(0) == 0;
  const c10::DataPtr copy = hold(copies ? bytes_of(vector.numel(), vector.scalar_type()) : 0);
  note_product(ProductBy::cublas);
}

// MKL's batched gemm knows batches whose matrices are contiguous or transposed; small ones are
// multiplied by a loop that takes any strides.
bool batched_gemm_takes(const Tensor& batch) {
  const auto matrix = [&](int64_t row, int64_t column) {
    return batch.stride(column) == 1 && batch.stride(row) >= batch.size(column);
  };
  return matrix(1, 2) || matrix(2, 1);
}

/// Whether the batched gemm of a card takes matrices as they are; `row`: the dimension along which
/// its columns go (prepare_batch_matrix_for_cublas in ATen/native/cuda/Blas.cpp).
bool card_takes(const Tensor& batch, int64_t row, int64_t rows, int64_t columns) {
  const int64_t column = 3 - row;
  if (batch.stride(row) == 1 && batch.stride(column) >= std::max<int64_t>(1, rows)) return true;
  if (batch.stride(column) == 1 && batch.stride(row) >= std::max<int64_t>(1, columns)) return true;
  return batch.is_contiguous() && batch.stride(1) != 0 && batch.stride(2) != 0;
}

/// Holds what a card holds while the product of two batches is computed.
void multiply_on_card(const Tensor& a, const Tensor& b, const Tensor& result) {
  if (a.numel() == 0 || b.numel() == 0) return;
  const int64_t rows = a.size(1), columns = b.size(2), inner = a.size(2);
  const bool by_column = result.stride(1) == 1 && result.stride(2) >= std::max<int64_t>(1, rows);
  const auto copied_to = [&](const Tensor& batch, int64_t first, int64_t second) {
    const bool taken = card_takes(batch, by_column ? 1 : 2, first, second);
    return hold(taken ? 0 : bytes_of(batch.numel(), batch.scalar_type()));
  };
  const c10::DataPtr first = by_column ? copied_to(a, rows, inner) : copied_to(b, columns, inner);
  const c10::DataPtr second = by_column ? copied_to(b, inner, columns) : copied_to(a, inner, rows);
  note_product(ProductBy::either);
}

template <size_t First>
void batched(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor a = operands[First].toTensor(), b = operands[First + 1].toTensor();
  op.redispatchBoxed(keys, stack);
  if (for_card()) return multiply_on_card(a, b, stack->back().toTensor());
  constexpr int64_t kSmall = 400;
  if (a.size(1) * a.size(2) * b.size(2) < kSmall) return;
  if (batched_gemm_takes(a) && batched_gemm_takes(b)) return;
  for (int64_t i = 0; i < a.size(0); ++i) run_product(a.select(0, i), b.select(0, i));
}

}  // namespace

void add_matrix_kernels(Kernels& kernels) {
  kernels.add_boxed<&product<0>>("aten::mm");
  kernels.add_boxed<&product<1>>("aten::addmm");
  kernels.add_boxed<&vector_product>("aten::mv");
  kernels.add_boxed<&batched<0>>("aten::bmm");
  kernels.add_boxed<&batched<1>>("aten::baddbmm");
}

}  // namespace tare::plan
