// Defines a small plain convolutional network.
#pragma once

#include <torch/nn.h>

#include "models/common.h"

namespace tare::models {

/// Classifies images by three blocks of convolution 3x3, batch norm and ReLU, with width, 2 width
/// and 4 width channels (default width: 16). Maxima over 2x2 pixels follow the first two blocks,
/// and the mean over all pixels the third. Layer groups: block1, block2, block3 (these are blocks
/// too), fc.
struct ConvNetImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` and `dropout`. Throws ConfigError unless
  /// sample_shape is [channels, height, width].
  explicit ConvNetImpl(const ModelOptions& options);
  /// Takes images, float32 [batch, channels, height, width] with both sides >= 4, and returns
  /// logits, float32 [batch, classes]. The sides may differ from those of sample_shape. Throws
  /// ShapeError for another shape.
  torch::Tensor forward(const torch::Tensor& x);

  SequentialBlock block1{nullptr};  ///< width channels, at the size of the image
  SequentialBlock block2{nullptr};  ///< 2 width channels, at half the size
  SequentialBlock block3{nullptr};  ///< 4 width channels, at a quarter of the size
  torch::nn::Linear fc{nullptr};    ///< the head, from 4 width to classes
  int64_t channels = 0;             ///< channels of an image
  double dropout = 0;               ///< probability of dropout before the head
};
TORCH_MODULE(ConvNet);

}  // namespace tare::models
