// Defines the Vision Transformer (Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words"), with
// torchvision's tensor names, so that its weights load.
#pragma once

#include <torch/nn.h>

#include <vector>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Configures what only this family has.
struct VitOptions {
  int64_t patch = 16;  ///< pixels of a patch's side, a divisor of both sides of an image
  int64_t mlp = 0;     ///< width of the layer inside a block; 0: 4 times that of a token
};
void visit_fields(auto& visit, VitOptions& o) {
  visit("patch", o.patch, config::between(1, kLargestSize));
  visit("mlp", o.mlp, config::between(0, kLargestWidth));
}

/// Attends from each token to all, in several heads. Its tensors are those of PyTorch's
/// MultiheadAttention.
struct VitAttentionImpl : torch::nn::Module {
  /// Makes a layer of `width` channels, which `heads` divides.
  VitAttentionImpl(int64_t width, int64_t heads);
  /// Maps float32 [batch, tokens, width] to the same shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor in_proj_weight;         ///< [3 width, width]: query, key, value
  torch::Tensor in_proj_bias;           ///< [3 width]
  torch::nn::Linear out_proj{nullptr};  ///< width to width
  int64_t heads = 0;                    ///< parts of the channels that attend on their own
};
TORCH_MODULE(VitAttention);

/// Says how large the blocks of a Vision Transformer are.
struct VitSizes {
  int64_t width = 0;   ///< channels of a token
  int64_t layers = 0;  ///< blocks
  int64_t heads = 0;   ///< of each block
  int64_t mlp = 0;     ///< channels inside of a block's two linear layers
  int64_t patch = 0;   ///< pixels of a patch's side
};

/// Adds attention, then two linear layers with GELU, each behind a layer norm.
struct VitBlockImpl : torch::nn::Module, Block {
  /// Makes a block; `dropout` acts on what each half adds, and behind GELU.
  VitBlockImpl(const VitSizes& sizes, double dropout);
  /// Maps float32 [batch, tokens, width] to the same shape, as a block: with recomputation or
  /// offload if they are set.
  torch::Tensor forward(const torch::Tensor& x);
  /// Computes what forward() returns, without the block's settings.
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::LayerNorm ln_1{nullptr};    ///< before the attention
  VitAttention self_attention{nullptr};  ///< between the tokens
  torch::nn::LayerNorm ln_2{nullptr};    ///< before the linear layers
  torch::nn::Sequential mlp{nullptr};    ///< linear, GELU, dropout, linear, dropout
  double dropout = 0;                    ///< behind the attention
};
TORCH_MODULE(VitBlock);

/// Adds positions to the tokens, and applies blocks and a layer norm.
struct VitEncoderImpl : torch::nn::Module {
  /// Makes an encoder of so many tokens, the one of the class included.
  VitEncoderImpl(int64_t tokens, const VitSizes& sizes, double dropout);
  /// Maps float32 [batch, tokens, width] to the same shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor pos_embedding;       ///< [1, tokens, width]
  torch::nn::Sequential layers;      ///< encoder_layer_0, encoder_layer_1, ...
  torch::nn::LayerNorm ln{nullptr};  ///< behind the blocks
  double dropout = 0;                ///< behind the positions
};
TORCH_MODULE(VitEncoder);

/// Classifies images of one size. Layer groups: embedding (class_token, conv_proj,
/// encoder.pos_embedding), encoder_layer_0, encoder_layer_1, ..., ln, heads; blocks:
/// encoder.layers.encoder_layer_0, ...
struct VitImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 768), `layers` (12), `heads` (12)
  /// and `dropout`. Throws ConfigError unless sample_shape is [channels, height, width], patches
  /// fill the image and `heads` divides `width`.
  VitImpl(const ModelOptions& options, const VitOptions& own);
  /// Takes images of the size of sample_shape, float32 [batch, channels, height, width], and
  /// returns logits, float32 [batch, classes]. Throws ShapeError for another shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor class_token;             ///< [1, 1, width]
  torch::nn::Conv2d conv_proj{nullptr};  ///< from each patch to a token
  VitEncoder encoder{nullptr};           ///< the blocks
  torch::nn::Sequential heads;           ///< the linear layer "head", from width to classes
  std::vector<int64_t> image;            ///< [channels, height, width]
};
TORCH_MODULE(Vit);

}  // namespace tare::models
