// Recurrent layers as cuDNN computes them on a card. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "tare/trace/recurrent_call.h"

namespace tare::plan {

class Kernels;

using RecurrentResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Computes lstm(), gru() or rnn() as a card does by cuDNN; `cell`: undefined but for an LSTM.
/// Returns the output, the last hidden state and the last cell state. Throws NotPlannable where
/// LibTorch's own kernels would compute it.
[[nodiscard]] RecurrentResult card_recurrent(RecurrentMode mode, const at::Tensor& input,
                                             const at::Tensor& hidden, const at::Tensor& cell,
                                             at::TensorList weights, bool has_biases,
                                             int64_t layers, double dropout, bool train,
                                             bool bidirectional, bool batch_first);

/// Is aten::_cudnn_rnn under autocast, which casts the operands to float16 whatever its type is,
/// and the weights into one block (ATen/cudnn/AutocastRNN.cpp). Call it without autocast.
[[nodiscard]] CudnnResults cast_recurrent(const at::Tensor& input, at::TensorList weights,
                                          int64_t each, const std::optional<at::Tensor>& block,
                                          const at::Tensor& hidden,
                                          const std::optional<at::Tensor>& cell, int64_t mode,
                                          int64_t hidden_size, int64_t projected, int64_t layers,
                                          bool batch_first, double dropout, bool train,
                                          bool bidirectional, at::IntArrayRef batch_sizes,
                                          const std::optional<at::Tensor>& dropout_state);

/// Adds cuDNN's recurrent layers.
void add_card_recurrent_kernels(Kernels& kernels);

}  // namespace tare::plan
