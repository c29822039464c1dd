// A tensor and its name: what models, optimizers, checkpoints and bundles exchange.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tare {

struct NamedTensor {
  std::string name;  ///< dotted path, e.g. "layer1.0.conv1.weight"
  at::Tensor tensor;
};

}  // namespace tare
