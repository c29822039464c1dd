// The operators of a graph as nodes of ONNX. Internal.
#pragma once

#include "tare/interchange/graph.h"
#include "tare/interchange/onnx_parts.h"

namespace tare::interchange {

/// Translates the operators of a graph. Throws ConfigError for one without a translation.
[[nodiscard]] OnnxNodes onnx_nodes(const Graph& graph);

}  // namespace tare::interchange
