// Recurrent layers as cuDNN computes them on a card. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace tare::plan {

class Kernels;

/// Names cuDNN's kinds of recurrent layers, as LibTorch numbers them.
enum class RecurrentMode : int64_t { relu = 0, tanh = 1, lstm = 2, gru = 3 };

/// Describes a call of cuDNN's recurrent layers.
struct CardRecurrent {
  RecurrentMode mode = RecurrentMode::lstm;
  int64_t inputs = 0, hidden = 0, layers = 1;
  int64_t projected = 0;  ///< features of an LSTM with projections; 0: none
  bool bidirectional = false, train = false;
  double dropout = 0;
  at::ScalarType type = at::kFloat;
  int64_t steps = 0, samples = 0;  ///< 0: the weights alone

  [[nodiscard]] int64_t directions() const { return bidirectional ? 2 : 1; }
  /// Returns the features that a layer hands on in one direction.
  [[nodiscard]] int64_t features() const { return projected > 0 ? projected : hidden; }
  [[nodiscard]] int64_t gates() const;
  /// Whether cuDNN draws for dropout between the layers.
  [[nodiscard]] bool drops() const { return train && dropout > 0; }
  /// Returns the elements of all weights; cuDNN has biases in any case.
  [[nodiscard]] int64_t weights() const;
};

/// Whether cuDNN computes recurrent layers of an input of this kind on the card of the recording
/// (use_cudnn in ATen/native/RNN.cpp).
[[nodiscard]] bool cudnn_takes_recurrent(const at::Tensor& input);

using RecurrentResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Computes lstm(), gru() or rnn() as a card does by cuDNN; `cell`: undefined but for an LSTM.
/// Returns the output, the last hidden state and the last cell state. Throws NotPlannable where
/// LibTorch's own kernels would compute it.
[[nodiscard]] RecurrentResult card_recurrent(RecurrentMode mode, const at::Tensor& input,
                                             const at::Tensor& hidden, const at::Tensor& cell,
                                             at::TensorList weights, bool has_biases,
                                             int64_t layers, double dropout, bool train,
                                             bool bidirectional, bool batch_first);

using CudnnResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Is aten::_cudnn_rnn under autocast, which casts the operands to float16 whatever its type is,
/// and the weights into one block (ATen/cudnn/AutocastRNN.cpp).
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
