// Defines GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"), with
// the tensor names and shapes of its published checkpoints, so that its weights load.
#pragma once

#include <torch/nn.h>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Computes x * weight + bias. The weight is [in, out], the transpose of a torch::nn::Linear's, as
/// GPT-2's checkpoints have it.
struct GptLinearImpl : torch::nn::Module {
  /// Draws the weight from a normal distribution of deviation 0.02; the bias is 0.
  GptLinearImpl(int64_t in, int64_t out);
  /// Takes float32 [..., in] and returns float32 [..., out].
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight;  ///< [in, out]
  torch::Tensor bias;    ///< [out]
};
TORCH_MODULE(GptLinear);

/// Applies causal self-attention of several heads: a token attends to itself and to earlier ones.
struct GptAttentionImpl : torch::nn::Module {
  /// Makes attention of `head_count` heads. `width` must be a multiple of `head_count`, which
  /// GptImpl checks. `drop_rate` is a probability.
  GptAttentionImpl(int64_t width, int64_t head_count, double drop_rate);
  /// Takes float32 [batch, time, width] and returns this shape.
  torch::Tensor forward(const torch::Tensor& x);

  GptLinear c_attn{nullptr};  ///< from width to query, key and value, 3 width in all
  GptLinear c_proj{nullptr};  ///< from width to width, after the attention
  int64_t heads = 0;          ///< attention heads of width / heads channels
  double dropout = 0;         ///< probability of dropout, of attention weights and of the output
};
TORCH_MODULE(GptAttention);

/// Applies two linear layers to each token: from width to 4 width, GELU (its tanh form), and back.
struct GptMlpImpl : torch::nn::Module {
  /// Makes both layers. `drop_rate` is the probability of dropout of the output.
  GptMlpImpl(int64_t width, double drop_rate);
  /// Takes float32 [..., width] and returns this shape.
  torch::Tensor forward(const torch::Tensor& x);

  GptLinear c_fc{nullptr};    ///< from width to 4 width
  GptLinear c_proj{nullptr};  ///< from 4 width to width
  double dropout = 0;         ///< probability of dropout of the output
};
TORCH_MODULE(GptMlp);

/// Applies attention and MLP, each after a layer norm and added to its input.
struct GptBlockImpl : torch::nn::Module, Block {
  /// Makes a block. `width` must be a multiple of `heads`, which GptImpl checks.
  GptBlockImpl(int64_t width, int64_t heads, double dropout);
  /// Takes float32 [batch, time, width] and returns this shape, as a block: with recomputation or
  /// offload if they are set.
  torch::Tensor forward(const torch::Tensor& x);
  /// Computes what forward() returns, without the block's settings.
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::LayerNorm ln_1{nullptr};  ///< before the attention
  torch::nn::LayerNorm ln_2{nullptr};  ///< before the MLP
  GptAttention attn{nullptr};          ///< the attention
  GptMlp mlp{nullptr};                 ///< the MLP
};
TORCH_MODULE(GptBlock);

/// Predicts the next token. `classes` is the vocabulary, `sample_shape` the longest time as
/// [context]; shorter batches may come. The output layer is the token embedding, so there is no
/// head of its own.
///
/// Initial weights are GPT-2's: normal with deviation 0.02, divided by sqrt(2 layers) for the last
/// linear layer of each attention and MLP; biases 0, norms 1 and 0. `dropout` acts where GPT-2's
/// does: after the embeddings, on the attention weights, on what is added. Layer groups: embedding
/// (wte, wpe), h.0, h.1, ..., ln_f; blocks: h.0, h.1, ...
struct GptImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width`, `layers`, `heads` and `dropout`; the
  /// defaults are those of GPT-2 small (768, 12 and 12). Throws ConfigError unless sample_shape is
  /// [context] and width a multiple of heads.
  explicit GptImpl(const ModelOptions& options);
  /// Takes tokens, int64 [batch, time] with a time of 1 to context, each in [0, classes). Returns
  /// the logits of the next token, float32 [batch, classes, time], which is what the losses and
  /// metrics take; in memory the classes are innermost. Throws ShapeError for another shape or
  /// dtype.
  torch::Tensor forward(const torch::Tensor& tokens);

  torch::nn::Embedding wte{nullptr};   ///< tokens, [classes, width], which is the output layer too
  torch::nn::Embedding wpe{nullptr};   ///< positions, [context, width]
  torch::nn::ModuleList h{nullptr};    ///< the blocks, each a GptBlock
  torch::nn::LayerNorm ln_f{nullptr};  ///< after the last block
  int64_t context = 0;                 ///< the longest time
  double dropout = 0;                  ///< probability of dropout after the embeddings
};
TORCH_MODULE(Gpt);

}  // namespace tare::models
