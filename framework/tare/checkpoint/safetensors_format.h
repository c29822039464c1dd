// What reader and writer of safetensors have in common. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {

struct Dtype {
  const char* name;  ///< in the file
  c10::ScalarType type;
  const char* torch_name;
};

/// The dtypes of the format, in the order in which the reference writer puts their data.
[[nodiscard]] const std::vector<Dtype>& dtypes();
[[nodiscard]] const Dtype* find_dtype(std::string_view name);
[[nodiscard]] const Dtype* find_dtype(c10::ScalarType type);
/// "BOOL, U8, ...".
[[nodiscard]] std::string dtype_names();

/// What is wrong with a tensor's name; unset: nothing.
[[nodiscard]] std::optional<std::string> name_problem(std::string_view name);
/// Number of elements times their size; unset if a product overflows, even if another size is zero.
[[nodiscard]] std::optional<int64_t> checked_bytes(const std::vector<int64_t>& shape,
                                                   c10::ScalarType dtype);

inline constexpr const char* kMetadataKey = "__metadata__";
inline constexpr const char* kTiedKey = "tare.tied";
inline constexpr const char* kManifestKey = "tare";

/// By offset; where tensors without data share one, by size, then name. The order of
/// Header::tensors.
void sort_by_place(std::vector<TensorInfo>& tensors);
/// Digest::layout. `tensors` sorted by place.
[[nodiscard]] std::string layout_hash(const std::vector<TensorInfo>& tensors,
                                      const std::map<std::string, std::string>& metadata);

}  // namespace tare::checkpoint
