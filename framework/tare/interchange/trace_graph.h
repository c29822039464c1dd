// Makes the graph of a model.
#pragma once

#include <vector>

#include "tare/interchange/graph.h"
#include "tare/model/model.h"

namespace tare::interchange {

/// Returns what the model computes in evaluation mode for any number of samples and, where an input
/// says so, for samples of any length. The forward is called several times on meta tensors, with
/// other numbers of samples and lengths: what differs between the calls shows how each size depends
/// on them. Nothing is computed, and the model is as before. The weights of the graph share the
/// storages of the model's on the host; a model on a card is refused.
///
/// Throws ConfigError, naming operator and layer, for a forward that reads values of its inputs,
/// calls other operators for other sizes, has a size that depends on those of the inputs otherwise
/// than linearly, changes a parameter, or draws random numbers. Throws what the forward throws.
[[nodiscard]] Graph trace_graph(Model& model, const std::vector<GraphInput>& inputs);

}  // namespace tare::interchange
