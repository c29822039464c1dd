// The inputs by which PyTorch's compilers call the model of a `.pt2` file. Internal.
#pragma once

#include <string>

#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Returns the bytes of a file as torch.save() writes it, with `(inputs, {})`: inputs of two
/// samples and, where the length is free, of two steps. They are zeros, or ones for a list of
/// whole numbers, such as lengths. torch.load() reads it with weights_only. Equal graphs give equal
/// bytes. Throws ConfigError for an input of a dtype that torch.save() has no storage for.
[[nodiscard]] std::string sample_inputs(const Graph& graph);

}  // namespace tare::interchange
