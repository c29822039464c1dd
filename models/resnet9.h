// ResNet-9: the small residual network of fast CIFAR training (Page 2018, "How to Train Your
// ResNet"), narrowed for the CPU.
#pragma once

#include <torch/nn.h>

#include "models/common.h"

namespace tare::models {

/// Two 3x3 convolutions, each with batch norm and ReLU, added to their input.
struct ResidualImpl : torch::nn::Module {
  explicit ResidualImpl(int64_t channels);
  torch::Tensor forward(const torch::Tensor& x);

  SequentialBlock conv1{nullptr}, conv2{nullptr};
};
TORCH_MODULE(Residual);

/// Images [batch, channels, height, width] of any size to logits [batch, classes]. Eight 3x3
/// convolutions: prep of `width` channels (default 8); layer1 (2 width) with a residual, layer2
/// (4 width), layer3 (8 width) with a residual, each of stride 2; global max pooling, so that the
/// same weights work for larger images; head "fc". Layer groups: prep, layer1, layer2, layer3, fc;
/// all but fc are blocks.
struct ResNet9Impl : torch::nn::Module {
  explicit ResNet9Impl(const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& x);

  SequentialBlock prep{nullptr}, layer1{nullptr}, layer2{nullptr}, layer3{nullptr};
  torch::nn::Linear fc{nullptr};
  int64_t channels = 0;
  double dropout = 0;
};
TORCH_MODULE(ResNet9);

[[nodiscard]] Family resnet9_family();

}  // namespace tare::models
