// The operators of a graph as nodes of ONNX. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/interchange/graph.h"

namespace tare::interchange {

inline constexpr int64_t kOnnxOpset = 18, kOnnxIr = 8;

/// Holds the nodes of a graph, and the constants that they read beside the weights.
struct OnnxNodes {
  std::vector<std::string> nodes{};      ///< NodeProto
  std::vector<std::string> constants{};  ///< TensorProto
  std::vector<std::string> names{};      ///< of the graph's values
};

/// Translates the operators of a graph. Throws ConfigError for one without a translation.
[[nodiscard]] OnnxNodes onnx_nodes(const Graph& graph);

/// Returns the number of a dtype in TensorProto. Throws ConfigError for one that ONNX lacks.
[[nodiscard]] int64_t onnx_type(c10::ScalarType type);

}  // namespace tare::interchange
