// Memory that an operator holds while it works. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>

#include <cstdint>

#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {

/// Holds a block of that many bytes for as long as the pointer lives; null for 0 bytes.
[[nodiscard]] inline c10::DataPtr hold(int64_t bytes, c10::DeviceType device = c10::kMeta) {
  return c10::GetAllocator(device)->allocate(static_cast<size_t>(bytes));
}

/// Holds, while the result lives, memory that only the kernels of the host take; null in a
/// recording for a card.
[[nodiscard]] inline c10::DataPtr hold_on_host(int64_t bytes) {
  return hold(for_card() ? 0 : bytes);
}

/// Returns the bytes of `count` elements.
[[nodiscard]] inline int64_t bytes_of(int64_t count, c10::ScalarType type) {
  return count * static_cast<int64_t>(c10::elementSize(type));
}

/// Returns the bytes of a copy without gaps of a tensor that has some, else 0.
[[nodiscard]] inline int64_t copied_bytes(const at::Tensor& tensor, at::MemoryFormat format) {
  return tensor.is_contiguous(format) ? 0 : bytes_of(tensor.numel(), tensor.scalar_type());
}

/// Holds, while the result lives, the bytes of a copy without gaps of a tensor that has some, else
/// null.
[[nodiscard]] inline c10::DataPtr hold_contiguous(
    const at::Tensor& tensor, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return hold(copied_bytes(tensor, format));
}

/// Returns the bytes of a copy of a tensor in another dtype; 0 for its own.
[[nodiscard]] inline int64_t converted_bytes(const at::Tensor& tensor, c10::ScalarType type) {
  return tensor.scalar_type() == type ? 0 : bytes_of(tensor.numel(), type);
}

/// Holds, while the result lives, the bytes of a copy of a tensor in another dtype, else null.
[[nodiscard]] inline c10::DataPtr hold_converted(const at::Tensor& tensor, c10::ScalarType type) {
  return hold(converted_bytes(tensor, type));
}

/// Whether a type is float16 or bfloat16.
[[nodiscard]] inline bool is_half(c10::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16;
}

/// Returns the dtype in which a card adds up elements of a tensor.
[[nodiscard]] inline c10::ScalarType accumulated(const at::Tensor& tensor) {
  return is_half(tensor.scalar_type()) ? at::kFloat : tensor.scalar_type();
}

/// Throws NotPlannable for another dtype than float32 and float64; a card has 16-bit ones too.
inline void require_float(const char* op, const at::Tensor& tensor) {
  if (for_card() && is_half(tensor.scalar_type())) return;
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble)
    throw NotPlannable(op, "is known for float32 and float64 only", "plan in float32");
}

/// Returns a new contiguous tensor with the dtype of `like`.
[[nodiscard]] inline at::Tensor fresh(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().device(c10::kMeta));
}

/// Returns a new contiguous tensor of the dtype in which a card adds up.
[[nodiscard]] inline at::Tensor fresh_sums(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().device(c10::kMeta).dtype(accumulated(like)));
}

}  // namespace tare::plan
