// The operators of a graph as nodes of ONNX. Internal.
#pragma once

#include "tare/interchange/graph.h"
#include "tare/interchange/onnx_parts.h"

namespace tare::interchange {

/// Translates the operators of a graph into those of an opset, kOnnxOpset or kOnnxAttentionOpset.
/// Throws ConfigError for one without a translation.
[[nodiscard]] OnnxNodes onnx_nodes(const Graph& graph, int64_t opset);

}  // namespace tare::interchange
