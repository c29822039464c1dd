// A recurrent classifier of sequences: embedding, LSTM layers, the state at each sequence's end.
#pragma once

#include <torch/nn.h>

#include "tare/model/registry.h"

namespace tare::models {

/// Input: tokens int64 [batch, longest] in [0, 256), and int64 lengths [batch] >= 1 or a bool mask
/// [batch, longest] whose first elements are true, as the collate function pad() gives them.
/// Output: logits [batch, classes] of the last layer's state at the end of each sequence.
/// Hochreiter and Schmidhuber 1997, Long Short-Term Memory.
struct LstmImpl : torch::nn::Module {
  explicit LstmImpl(const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& ends);

  torch::nn::Embedding embedding{nullptr};
  torch::nn::LSTM layers{nullptr};
  torch::nn::Linear head{nullptr};
  double dropout = 0;
};
TORCH_MODULE(Lstm);

[[nodiscard]] Family lstm_family();

}  // namespace tare::models
