// Describes, measures and sorts the tensors of a safetensors file.
#include "tare/checkpoint/tensor_info.h"

#include <algorithm>
#include <tuple>

#include "tare/checkpoint/dtypes.h"

namespace tare::checkpoint {

std::string describe(c10::ScalarType dtype, std::span<const int64_t> shape) {
  const Dtype* known = find_dtype(dtype);
  std::string text = known ? known->torch_name : c10::toString(dtype);
  text += " [";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<int64_t> checked_bytes(const std::vector<int64_t>& shape, c10::ScalarType dtype) {
  const Dtype* known = find_dtype(dtype);
  if (known == nullptr) return std::nullopt;
  int64_t bytes = known->bytes;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

void sort_by_place(std::vector<TensorInfo>& tensors) {
  std::ranges::sort(tensors, [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
}

}  // namespace tare::checkpoint
