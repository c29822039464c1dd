// Lists the dtypes that a safetensors file can hold.
#include "tare/checkpoint/dtypes.h"

#include <algorithm>

namespace tare::checkpoint {

const std::vector<Dtype>& dtypes() {
  using c10::ScalarType;
  static const std::vector<Dtype> all = {{"I64", ScalarType::Long, "int64", 8},
                                         {"F64", ScalarType::Double, "float64", 8},
                                         {"F32", ScalarType::Float, "float32", 4},
                                         {"I32", ScalarType::Int, "int32", 4},
                                         {"BF16", ScalarType::BFloat16, "bfloat16", 2},
                                         {"F16", ScalarType::Half, "float16", 2},
                                         {"I16", ScalarType::Short, "int16", 2},
                                         {"F8_E4M3", ScalarType::Float8_e4m3fn, "float8_e4m3fn", 1},
                                         {"F8_E5M2", ScalarType::Float8_e5m2, "float8_e5m2", 1},
                                         {"I8", ScalarType::Char, "int8", 1},
                                         {"U8", ScalarType::Byte, "uint8", 1},
                                         {"BOOL", ScalarType::Bool, "bool", 1}};
  return all;
}

const Dtype* find_dtype(std::string_view name) {
  const auto found =
      std::ranges::find(dtypes(), name, [](const Dtype& d) { return std::string_view(d.name); });
  return found == dtypes().end() ? nullptr : &*found;
}

const Dtype* find_dtype(c10::ScalarType type) {
  const auto found = std::ranges::find(dtypes(), type, &Dtype::type);
  return found == dtypes().end() ? nullptr : &*found;
}

std::string dtype_names() {
  std::string names;
  for (const auto& d : dtypes()) names += (names.empty() ? "" : ", ") + std::string(d.name);
  return names;
}

}  // namespace tare::checkpoint
