// Defines ResNet-9: the small residual network of fast CIFAR training (Page 2018, "How to Train
// Your ResNet"), narrowed for the CPU.
#pragma once

#include <torch/nn.h>

#include "models/common.h"

namespace tare::models {

/// Applies two 3x3 convolutions, each with batch norm and ReLU, and adds the result to the input.
struct ResidualImpl : torch::nn::Module {
  /// Makes a layer that keeps the number of channels.
  explicit ResidualImpl(int64_t channels);
  /// Takes float32 [batch, channels, height, width] and returns this shape.
  torch::Tensor forward(const torch::Tensor& x);

  SequentialBlock conv1{nullptr};  ///< the first convolution, with norm and ReLU
  SequentialBlock conv2{nullptr};  ///< the second convolution, with norm and ReLU
};
TORCH_MODULE(Residual);

/// Classifies images by eight 3x3 convolutions. The maximum over all pixels precedes the head, so
/// that the same weights work for larger images. Layer groups: prep, layer1, layer2, layer3, fc;
/// all but fc are blocks.
struct ResNet9Impl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 8) and `dropout`. Throws
  /// ConfigError unless sample_shape is [channels, height, width].
  explicit ResNet9Impl(const ModelOptions& options);
  /// Takes images, float32 [batch, channels, height, width] of any size, and returns logits,
  /// float32 [batch, classes]. Throws ShapeError for another shape.
  torch::Tensor forward(const torch::Tensor& x);

  SequentialBlock prep{nullptr};    ///< width channels, at the size of the image
  SequentialBlock layer1{nullptr};  ///< 2 width channels, stride 2, then a residual
  SequentialBlock layer2{nullptr};  ///< 4 width channels, stride 2
  SequentialBlock layer3{nullptr};  ///< 8 width channels, stride 2, then a residual
  torch::nn::Linear fc{nullptr};    ///< the head, from 8 width to classes
  int64_t channels = 0;             ///< channels of an image
  double dropout = 0;               ///< probability of dropout before the head
};
TORCH_MODULE(ResNet9);

}  // namespace tare::models
