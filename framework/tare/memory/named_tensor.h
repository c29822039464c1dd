// A tensor and its name: what models, optimizers, checkpoints and bundles exchange.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tare {

/// Holds a tensor and its name. A value, which shares the tensor's storage.
struct NamedTensor {
  std::string name;   ///< dotted path, e.g. "layer1.0.conv1.weight"
  at::Tensor tensor;  ///< shares its storage with the owner's
};

}  // namespace tare
