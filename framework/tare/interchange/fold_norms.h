// Folds batch norms into the layers in front of them.
#pragma once

#include <cstdint>

#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Folds each batch norm that directly follows a convolution or a linear layer into the weight and
/// the bias of that layer, where nothing else reads the layer's output or its weight: with s =
/// gamma / sqrt(variance + eps), weight' = s weight and bias' = s (bias - mean) + beta, computed in
/// float64. The tensors of these norms leave the graph. What the graph computes stays the same but
/// for rounding. Returns how many norms were folded.
int64_t fold_norms(Graph& graph);

}  // namespace tare::interchange
