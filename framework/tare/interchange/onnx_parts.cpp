// Numbers of the dtypes of ONNX.
#include "tare/interchange/onnx_parts.h"

#include "tare/base/error.h"

namespace tare::interchange {

int64_t onnx_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return 1;
    case c10::ScalarType::Byte:
      return 2;
    case c10::ScalarType::Char:
      return 3;
    case c10::ScalarType::Short:
      return 5;
    case c10::ScalarType::Int:
      return 6;
    case c10::ScalarType::Long:
      return 7;
    case c10::ScalarType::Bool:
      return 9;
    case c10::ScalarType::Half:
      return 10;
    case c10::ScalarType::Double:
      return 11;
    case c10::ScalarType::BFloat16:
      return 16;
    default:
      throw ConfigError("export.onnx", std::string("a tensor has the dtype ") +
                                           c10::toString(type) + ", which ONNX lacks");
  }
}

}  // namespace tare::interchange
