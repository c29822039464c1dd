// ResNet-18, -34 and -50 (He et al. 2015, "Deep Residual Learning for Image Recognition"), with
// torchvision's tensor names, so that its weights load.
#pragma once

#include <torch/nn.h>

#include <array>
#include <string>
#include <vector>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Two 3x3 convolutions with batch norm around a shortcut; "downsample" is a 1x1 convolution where
/// the shape changes.
struct BasicBlockImpl : torch::nn::Module, Block {
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride);
  torch::Tensor forward(const torch::Tensor& x);
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

/// A 1x1 convolution to `width` channels, a 3x3 one, which has the stride as in torchvision, and a
/// 1x1 one to 4 width channels, with batch norms, around a shortcut as above.
struct BottleneckImpl : torch::nn::Module, Block {
  BottleneckImpl(int64_t in, int64_t width, int64_t stride);
  torch::Tensor forward(const torch::Tensor& x);
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(Bottleneck);

/// The blocks of each layer, and of which kind.
struct ResNetDepth {
  std::array<int64_t, 4> blocks{};
  bool bottleneck = false;
};

/// Images [batch, channels, height, width] of any size to logits [batch, classes]. Together the
/// layers divide height and width by 32. Layer groups: stem (conv1, bn1), layer1, layer2, layer3,
/// layer4, fc; blocks: layer1.0, layer1.1, ...
struct ResNetImpl : torch::nn::Module {
  ResNetImpl(const std::string& name, const ResNetDepth& depth, const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  std::vector<torch::nn::Sequential> layers;
  torch::nn::Linear fc{nullptr};
  int64_t channels = 0;
  double dropout = 0;
};
TORCH_MODULE(ResNet);

[[nodiscard]] Family resnet18_family();
[[nodiscard]] Family resnet34_family();
[[nodiscard]] Family resnet50_family();

}  // namespace tare::models
