// TensorInfo: name, dtype, shape and place of one tensor in a safetensors file.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tare::checkpoint {

inline constexpr int64_t kMaxNameBytes = 4096;  ///< of a tensor's name
inline constexpr int64_t kMaxRank = 64;         ///< dimensions of a tensor

/// Describes one tensor, as the header's entry does.
struct TensorInfo {
  std::string name;  ///< UTF-8, 1 to kMaxNameBytes, no control characters
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the elements
  std::vector<int64_t> shape;                      ///< sizes by dimension; empty: a scalar
  int64_t offset = 0;  ///< of the first byte, from the start of the data
  int64_t bytes = 0;   ///< of the data

  bool operator==(const TensorInfo&) const = default;
};

/// Returns "float32 [10, 512]".
[[nodiscard]] std::string describe(c10::ScalarType dtype, std::span<const int64_t> shape);
/// Returns the number of elements times their size; unset if a product overflows, even if another
/// size is zero, and for a dtype that no safetensors file can hold.
[[nodiscard]] std::optional<int64_t> checked_bytes(const std::vector<int64_t>& shape,
                                                   c10::ScalarType dtype);
/// Sorts tensors by offset; where tensors without data share one, by size, then name. The order of
/// Header::tensors.
void sort_by_place(std::vector<TensorInfo>& tensors);

}  // namespace tare::checkpoint
