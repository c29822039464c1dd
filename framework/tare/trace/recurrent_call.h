// Describes calls of cuDNN's recurrent layers. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

namespace tare::plan {

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

/// Holds the results of aten::_cudnn_rnn: the output, the last states, the reserve and the weights.
using CudnnResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

}  // namespace tare::plan
