// Lets a graph begin with the transforms of its model's data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "tare/inference/bundle.h"
#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Is a step in front of an input of a graph: (input - mean) / deviation, in float32.
struct Scaling {
  size_t input = 0;                ///< place in Graph::inputs
  at::Tensor mean{}, deviation{};  ///< float32, of shapes that the input can be reduced by
  /// Returns what the step makes of the values of its input.
  [[nodiscard]] at::Tensor apply(const at::Tensor& values) const;
};

/// Puts in front of the inputs of a graph what the data of the training did to their numbers: the
/// steps `normalise` that come last among the transforms of pictures, or the means and deviations
/// of the columns of a table. Takes them out of the manifest, which has then what is left to the
/// reader of the file. Returns the steps in the order in which they are computed.
std::vector<Scaling> add_transforms(Graph& graph, BundleManifest& manifest);

}  // namespace tare::interchange
