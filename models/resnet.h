// Defines ResNet-18, -34 and -50 (He et al. 2015, "Deep Residual Learning for Image Recognition"),
// with torchvision's tensor names, so that its weights load.
#pragma once

#include <torch/nn.h>

#include <array>
#include <string>
#include <vector>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Applies two 3x3 convolutions with batch norm around a shortcut.
struct BasicBlockImpl : torch::nn::Module, Block {
  /// Makes a block from `in` to `out` channels; the first convolution has the stride.
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride);
  /// Takes float32 [batch, in, height, width] and returns [batch, out, height / stride,
  /// width / stride], rounded up, as a block: with recomputation or offload if they are set.
  torch::Tensor forward(const torch::Tensor& x);
  /// Computes what forward() returns, without the block's settings.
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr};           ///< 3x3 with the stride, in to out
  torch::nn::Conv2d conv2{nullptr};           ///< 3x3, out to out
  torch::nn::BatchNorm2d bn1{nullptr};        ///< after conv1; ReLU follows it
  torch::nn::BatchNorm2d bn2{nullptr};        ///< after conv2; sum and ReLU follow it
  torch::nn::Sequential downsample{nullptr};  ///< shortcut, 1x1 and norm; null for equal shapes
};
TORCH_MODULE(BasicBlock);

/// Applies a 1x1 convolution to `width` channels, a 3x3 one and a 1x1 one to 4 width channels, with
/// batch norms, around a shortcut.
struct BottleneckImpl : torch::nn::Module, Block {
  /// Makes a block from `in` to 4 width channels; the 3x3 convolution has the stride, as in
  /// torchvision.
  BottleneckImpl(int64_t in, int64_t width, int64_t stride);
  /// Takes float32 [batch, in, rows, columns] and returns [batch, 4 width, rows / stride,
  /// columns / stride], rounded up, as a block: with recomputation or offload if they are set.
  torch::Tensor forward(const torch::Tensor& x);
  /// Computes what forward() returns, without the block's settings.
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr};           ///< 1x1, in to width
  torch::nn::Conv2d conv2{nullptr};           ///< 3x3 with the stride, width to width
  torch::nn::Conv2d conv3{nullptr};           ///< 1x1, width to 4 width
  torch::nn::BatchNorm2d bn1{nullptr};        ///< after conv1; ReLU follows it
  torch::nn::BatchNorm2d bn2{nullptr};        ///< after conv2; ReLU follows it
  torch::nn::BatchNorm2d bn3{nullptr};        ///< after conv3; sum and ReLU follow it
  torch::nn::Sequential downsample{nullptr};  ///< shortcut, 1x1 and norm; null for equal shapes
};
TORCH_MODULE(Bottleneck);

/// Says how many blocks each layer has, and of which kind they are.
struct ResNetDepth {
  std::array<int64_t, 4> blocks{};  ///< of layer1, layer2, layer3, layer4
  bool bottleneck = false;          ///< they are Bottleneck, else BasicBlock
};

/// Classifies images. Together the layers divide height and width by 32. Layer groups: stem (conv1,
/// bn1), layer1, layer2, layer3, layer4, fc; blocks: layer1.0, layer1.1, ...
struct ResNetImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 64) and `dropout`; `name` is the
  /// family's, for messages. Throws ConfigError unless sample_shape is [channels, height, width].
  ResNetImpl(const std::string& name, const ResNetDepth& depth, const ModelOptions& options);
  /// Takes images, float32 [batch, channels, height, width] of any size, and returns logits,
  /// float32 [batch, classes]. Throws ShapeError for another shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr};           ///< 7x7 of stride 2, channels to width
  torch::nn::BatchNorm2d bn1{nullptr};        ///< after conv1; ReLU and max pooling follow
  std::vector<torch::nn::Sequential> layers;  ///< layer1, layer2, layer3, layer4
  torch::nn::Linear fc{nullptr};  ///< the head: to classes, from 8 (Bottleneck: 32) width
  int64_t channels = 0;           ///< channels of an image
  double dropout = 0;             ///< probability of dropout before the head
};
TORCH_MODULE(ResNet);

}  // namespace tare::models
