// Defines MobileNetV3, large and small (Howard et al. 2019, "Searching for MobileNetV3"), with
// torchvision's tensor names, so that its weights load.
#pragma once

#include <torch/nn.h>

#include <string>
#include <vector>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Describes a block as the paper's tables 1 and 2 do, for a width of 16.
struct MobileBlock {
  int64_t in = 0;           ///< channels of the input
  int64_t kernel = 3;       ///< side of the depthwise convolution
  int64_t inner = 0;        ///< channels of the depthwise convolution
  int64_t out = 0;          ///< channels of the result
  bool squeezes = false;    ///< it weighs its channels by squeeze and excitation
  bool hard_swish = false;  ///< its activation is hard swish, else ReLU
  int64_t stride = 1;       ///< of the depthwise convolution
};

/// Multiplies each channel by a weight from 0 to 1, which two layers compute from all channels'
/// means (Hu et al. 2017, "Squeeze-and-Excitation Networks").
struct SqueezeImpl : torch::nn::Module {
  /// Makes 1x1 convolutions from `channels` to `inner` channels and back.
  SqueezeImpl(int64_t channels, int64_t inner);
  /// Maps float32 [batch, channels, height, width] to the same shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d fc1{nullptr};  ///< channels to inner; ReLU follows it
  torch::nn::Conv2d fc2{nullptr};  ///< inner to channels; hard sigmoid follows it
};
TORCH_MODULE(Squeeze);

/// Widens by a 1x1 convolution, applies a depthwise one, and narrows by a 1x1 one, around a
/// shortcut where input and output have equal shapes.
struct InvertedResidualImpl : torch::nn::Module, Block {
  /// Makes the block as described, with the channels as they are.
  explicit InvertedResidualImpl(const MobileBlock& described);
  /// Takes float32 [batch, in, height, width] and returns [batch, out, height / stride,
  /// width / stride], rounded up, as a block: with recomputation or offload if they are set.
  torch::Tensor forward(const torch::Tensor& x);
  /// Computes what forward() returns, without the block's settings.
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::Sequential block{nullptr};  ///< the convolutions with their norms and activations
  bool has_shortcut = false;             ///< input and output are added
};
TORCH_MODULE(InvertedResidual);

/// Says which blocks a network has, and how wide its last hidden layer is.
struct MobileNetTable {
  std::vector<MobileBlock> blocks;  ///< features.1, features.2, ...
  int64_t last = 0;                 ///< channels of the hidden layer of the classifier
};

/// Classifies images. Together the layers divide height and width by 32. Layer groups: features.0,
/// features.1, ..., classifier.0, classifier.3; blocks: features.1, ...
struct MobileNetV3Impl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 16) and `dropout`; `name` is the
  /// family's, for messages. All channels are width / 16 times those of the table, rounded to
  /// multiples of 8. Throws ConfigError unless sample_shape is [channels, height, width].
  MobileNetV3Impl(const std::string& name, const MobileNetTable& table,
                  const ModelOptions& options);
  /// Takes images, float32 [batch, channels, height, width] of any size, and returns logits,
  /// float32 [batch, classes]. Throws ShapeError for another shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Sequential features;    ///< a convolution of stride 2, the blocks, a 1x1 convolution
  torch::nn::Sequential classifier;  ///< linear, hard swish, dropout, linear, the head
  int64_t channels = 0;              ///< channels of an image
};
TORCH_MODULE(MobileNetV3);

}  // namespace tare::models
