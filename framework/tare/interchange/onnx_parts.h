// OnnxNodes: holds what a translation to ONNX makes; and numbers of the format. Internal.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tare::interchange {

/// Holds the versions of the operators that are written; the second has attention as one operator.
inline constexpr int64_t kOnnxOpset = 18, kOnnxAttentionOpset = 23;

/// Holds the nodes of a graph, and the constants that they read beside the weights.
struct OnnxNodes {
  std::vector<std::string> nodes{};      ///< NodeProto
  std::vector<std::string> constants{};  ///< TensorProto
  std::vector<std::string> names{};      ///< of the graph's values
};

/// Returns the number of a dtype in TensorProto. Throws ConfigError for one that ONNX lacks.
[[nodiscard]] int64_t onnx_type(c10::ScalarType type);

}  // namespace tare::interchange
