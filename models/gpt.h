// GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"), with the
// tensor names and shapes of its published checkpoints, so that its weights load.
#pragma once

#include <torch/nn.h>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// x [..., in] to x * weight + bias [..., out]. The weight is [in, out], the transpose of a
/// torch::nn::Linear's, as GPT-2's checkpoints have it.
struct GptLinearImpl : torch::nn::Module {
  GptLinearImpl(int64_t in, int64_t out);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;
};
TORCH_MODULE(GptLinear);

/// Causal self-attention of several heads.
struct GptAttentionImpl : torch::nn::Module {
  GptAttentionImpl(int64_t width, int64_t head_count, double drop_rate);
  torch::Tensor forward(const torch::Tensor& x);

  GptLinear c_attn{nullptr}, c_proj{nullptr};
  int64_t heads = 0;
  double dropout = 0;
};
TORCH_MODULE(GptAttention);

/// Two layers with GELU (its tanh form) between, of 4 width.
struct GptMlpImpl : torch::nn::Module {
  GptMlpImpl(int64_t width, double drop_rate);
  torch::Tensor forward(const torch::Tensor& x);

  GptLinear c_fc{nullptr}, c_proj{nullptr};
  double dropout = 0;
};
TORCH_MODULE(GptMlp);

/// Attention and MLP, each after a layer norm and added to its input.
struct GptBlockImpl : torch::nn::Module, Block {
  GptBlockImpl(int64_t width, int64_t heads, double dropout);
  torch::Tensor forward(const torch::Tensor& x);
  torch::Tensor body(const torch::Tensor& x);

  torch::nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  GptAttention attn{nullptr};
  GptMlp mlp{nullptr};
};
TORCH_MODULE(GptBlock);

/// Tokens int64 [batch, time], each in [0, classes), to the logits of the next token
/// [batch, classes, time], which is what the losses and metrics take; in memory the classes are
/// innermost. `classes` is the vocabulary, `sample_shape` the longest time as [context]; shorter
/// batches may come. The output layer is the token embedding, so there is no head of its own.
///
/// Initial weights as GPT-2's: normal with deviation 0.02, divided by sqrt(2 layers) for the last
/// linear layer of each attention and MLP; biases 0, norms 1 and 0. `dropout` acts where GPT-2's
/// does: after the embeddings, on the attention weights, on what is added. Layer groups: embedding
/// (wte, wpe), h.0, h.1, ..., ln_f; blocks: h.0, h.1, ...
struct GptImpl : torch::nn::Module {
  explicit GptImpl(const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& tokens);

  torch::nn::Embedding wte{nullptr}, wpe{nullptr};
  torch::nn::ModuleList h{nullptr};
  torch::nn::LayerNorm ln_f{nullptr};
  int64_t context = 0;
  double dropout = 0;
};
TORCH_MODULE(Gpt);

[[nodiscard]] Family gpt_family();

}  // namespace tare::models
