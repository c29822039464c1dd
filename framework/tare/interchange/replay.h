// Computes a graph, operator by operator, with LibTorch on the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Returns the outputs of a graph for its inputs, contiguous on the host, each [batch, ...] with
/// the dtypes of the graph. A tensor is freed behind the last operator that reads it. Throws
/// ShapeError for inputs that the graph does not describe, and what the operators throw.
[[nodiscard]] std::vector<at::Tensor> replay(const Graph& graph,
                                             const std::vector<at::Tensor>& inputs);

/// Returns the sizes of an input [batch, ...] for these any sizes.
[[nodiscard]] std::vector<int64_t> shape_of(const Value& value, const AnySizes& sizes);

/// Returns the largest difference of two tensors of one shape, as a share of the largest magnitude
/// in `expected`, or of 1 where that is smaller; infinity where one has a NaN or infinity that the
/// other has not, or another shape or dtype.
[[nodiscard]] double difference(const at::Tensor& got, const at::Tensor& expected);

}  // namespace tare::interchange
