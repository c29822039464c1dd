// Defines a recurrent classifier of sequences: embedding, LSTM layers, the state at each
// sequence's end.
#pragma once

#include <torch/nn.h>

#include "tare/model/registry.h"

namespace tare::models {

/// Classifies sequences of bytes by the last layer's state at the end of each sequence. Layer
/// groups: embedding, layers, head. Hochreiter and Schmidhuber 1997, Long Short-Term Memory.
struct LstmImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 64), `layers` (default 1) and
  /// `dropout`. Throws ConfigError unless sample_shape has one number.
  explicit LstmImpl(const ModelOptions& options);
  /// Takes tokens, int64 [batch, longest] in [0, 256), and their ends: int64 lengths [batch] >= 1
  /// or a bool mask [batch, longest] whose first elements are true, as the collate function pad()
  /// gives them. Returns logits, float32 [batch, classes]. Throws ShapeError for another number of
  /// dimensions; a length of 0 or above `longest` is an error of LibTorch.
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& ends);

  torch::nn::Embedding embedding{nullptr};  ///< [256, width], one row for each byte
  torch::nn::LSTM layers{nullptr};          ///< recurrent layers of width channels, batch first
  torch::nn::Linear head{nullptr};          ///< from width to classes
  double dropout = 0;                       ///< probability of dropout before the head
};
TORCH_MODULE(Lstm);

}  // namespace tare::models
