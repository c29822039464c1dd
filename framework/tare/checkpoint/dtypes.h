// The dtypes of safetensors files, with their names there and in PyTorch. Internal.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tare::checkpoint {

struct Dtype {
  const char* name;  ///< in the file
  c10::ScalarType type;
  const char* torch_name;
  int64_t bytes;  ///< of an element
};

/// Returns the dtypes of the format, in the order in which the reference writer puts their data.
[[nodiscard]] const std::vector<Dtype>& dtypes();
[[nodiscard]] const Dtype* find_dtype(std::string_view name);
[[nodiscard]] const Dtype* find_dtype(c10::ScalarType type);
/// Returns "BOOL, U8, ...".
[[nodiscard]] std::string dtype_names();

}  // namespace tare::checkpoint
