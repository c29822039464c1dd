// Writes a graph as an ONNX model, which ONNX Runtime, TensorRT and others read.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Says what else the file holds.
struct OnnxOptions {
  std::map<std::string, std::string> metadata{};  ///< ModelProto::metadata_props
  int64_t opset = 18;  ///< version of the operators: 18, or 23, which has attention as one of them
  /// Above so many bytes the weights lie in a second file, PATH.data, because a message of Protocol
  /// Buffers has at most 2 GiB.
  int64_t most_inside_bytes = int64_t{1'900'000'000};
};

/// Writes a graph with the operators of ONNX 18 or 23; the sizes `batch` and `length` of the inputs
/// may have any value. Initializers have the names of the model's weights. On any error the old
/// file stays. Equal graphs give equal bytes. Throws ConfigError, naming operator and layer, for an
/// operator that has none in ONNX; IoError.
///
/// Format: onnx/onnx.proto and docs/Operators.md of ONNX 1.13 and 1.18.
/// Returns the file of the weights; empty: they are inside.
std::filesystem::path write_onnx(const std::filesystem::path& path, const Graph& graph,
                                 const OnnxOptions& options = {});
/// Throws ConfigError for an operator that has none in the opset of ONNX, as write_onnx().
void check_onnx(const Graph& graph, int64_t opset = OnnxOptions{}.opset);

}  // namespace tare::interchange
