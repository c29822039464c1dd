// A small plain convolutional network.
#pragma once

#include <torch/nn.h>

#include "models/common.h"

namespace tare::models {

/// Images [batch, channels, height, width], both sides >= 4, to logits [batch, classes]: three
/// blocks of convolution 3x3, batch norm and ReLU, of width, 2 width and 4 width channels (default
/// 16), max-pooled by 2 after the first two; average pooling; head "fc". Layer groups: block1,
/// block2, block3 (these are blocks too), fc.
struct ConvNetImpl : torch::nn::Module {
  explicit ConvNetImpl(const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& x);

  SequentialBlock block1{nullptr}, block2{nullptr}, block3{nullptr};
  torch::nn::Linear fc{nullptr};
  int64_t channels = 0;
  double dropout = 0;
};
TORCH_MODULE(ConvNet);

[[nodiscard]] Family convnet_family();

}  // namespace tare::models
