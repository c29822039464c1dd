// Defines what the model families share: input checks, convolutions, initial weights, dropout.
#pragma once

#include <torch/nn.h>

#include <memory>
#include <string>
#include <utility>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Returns an option, or the family's default where it is 0.
[[nodiscard]] inline int64_t or_default(int64_t value, int64_t otherwise) {
  return value > 0 ? value : otherwise;
}

/// Returns the channels of [channels, height, width] samples. Throws ConfigError for another sample
/// shape.
[[nodiscard]] int64_t image_channels(const std::string& family, const ModelOptions& options);

/// Throws ShapeError unless `input` is [batch, channels, height, width] with both sides >= `least`.
void require_images(const char* where, const torch::Tensor& input, int64_t channels,
                    int64_t least = 1);

/// Makes a convolution without bias, padded so that stride 1 keeps the size, for use before a batch
/// norm.
[[nodiscard]] torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1);

/// Applies modules one after the other, and is a block, so that it can recompute or offload its
/// activations.
struct SequentialBlockImpl : torch::nn::SequentialImpl, Block {
  using torch::nn::SequentialImpl::SequentialImpl;
  /// Returns what the last module returns. Shapes and dtypes are those that the modules take and
  /// return.
  torch::Tensor forward(const torch::Tensor& x);
};
TORCH_MODULE(SequentialBlock);

/// Applies modules one after the other. Unlike a Sequential it can be in a Sequential.
struct ChainImpl : torch::nn::SequentialImpl {
  using torch::nn::SequentialImpl::SequentialImpl;
  /// Returns what the last module returns. Shapes and dtypes are those that the modules take and
  /// return.
  torch::Tensor forward(const torch::Tensor& x);
};
TORCH_MODULE(Chain);

/// Initialises weights as in torchvision: convolutions Kaiming-normal (fan out, ReLU), norms 1 and
/// 0. Linear layers keep LibTorch's.
void init_weights(torch::nn::Module& module);

/// Applies dropout before the head; identity for p = 0 and in evaluation mode.
[[nodiscard]] torch::Tensor drop(const torch::Tensor& x, double p, bool training);

/// Makes a family that builds `Holder(options)` with these layer groups.
template <class Holder>
[[nodiscard]] Family make_family(Family family, std::vector<LayerGroup> groups) {
  family.make = [groups = std::move(groups)](const ModelOptions& options) {
    return Model(Holder(options), groups);
  };
  return family;
}

}  // namespace tare::models
