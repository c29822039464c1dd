// Defines a network that compares two images by one trunk (Bromley et al. 1993, "Signature
// Verification using a Siamese Time Delay Neural Network"), with the tensor names of PyTorch's
// example siamese_network.
#pragma once

#include <torch/nn.h>

#include "tare/model/registry.h"

namespace tare::models {

/// Classifies pairs of images: a ResNet-18 without its head maps each to features, and two linear
/// layers see the features of both. Layer groups: stem, resnet.4, ..., resnet.7, fc.0, fc.2;
/// blocks: resnet.4.0, resnet.4.1, ...
struct SiameseImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 64) and `dropout`. Throws
  /// ConfigError unless sample_shape is [channels, height, width].
  explicit SiameseImpl(const ModelOptions& options);
  /// Takes two images of each pair, both float32 [batch, channels, height, width] of any size, and
  /// returns logits, float32 [batch, classes]. The order of the two matters. Throws ShapeError for
  /// another shape, and for another number of images on the two sides.
  torch::Tensor forward(const torch::Tensor& left, const torch::Tensor& right);

  torch::nn::Sequential resnet;  ///< the trunk: convolution, norm, ReLU, pooling, layers, mean
  torch::nn::Sequential fc;      ///< linear to 256, ReLU, linear to classes, the head
  int64_t channels = 0;          ///< channels of an image
  double dropout = 0;            ///< probability of dropout before the linear layers
};
TORCH_MODULE(Siamese);

}  // namespace tare::models
