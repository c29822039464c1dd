// Defines a multi-layer perceptron: flatten, hidden layers with ReLU, a linear head.
#pragma once

#include <torch/nn.h>

#include <vector>

#include "tare/model/registry.h"

namespace tare::models {

/// Classifies samples of any shape, flattened to their features. Layers "hidden0", "hidden1", ...
/// and "head", each a layer group.
struct MlpImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `hidden` (default: one layer of 128) and
  /// `dropout`. Throws ConfigError for an empty sample_shape, a size below 1, or more features than
  /// an int64 counts.
  explicit MlpImpl(const ModelOptions& options);
  /// Takes float32 [batch, ...] with as many features a sample as sample_shape has, and returns
  /// logits, float32 [batch, classes]. Throws ShapeError for another number of features.
  torch::Tensor forward(const torch::Tensor& x);

  std::vector<torch::nn::Linear> hidden;  ///< hidden layers, in their order; ReLU follows each
  torch::nn::Linear head{nullptr};        ///< from the last hidden layer to classes
  double dropout = 0;                     ///< probability of dropout before the head
};
TORCH_MODULE(Mlp);

}  // namespace tare::models
