// A multi-layer perceptron: flatten, hidden layers with ReLU, a linear head.
#pragma once

#include <torch/nn.h>

#include <vector>

#include "tare/model/registry.h"

namespace tare::models {

/// Input [batch, ...], flattened to the features of a sample, to logits [batch, classes]. Layers
/// "hidden0", "hidden1", ... and "head", each a layer group. Default: one hidden layer of 128.
struct MlpImpl : torch::nn::Module {
  explicit MlpImpl(const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& x);

  std::vector<torch::nn::Linear> hidden;
  torch::nn::Linear head{nullptr};
  double dropout = 0;
};
TORCH_MODULE(Mlp);

[[nodiscard]] Family mlp_family();

}  // namespace tare::models
