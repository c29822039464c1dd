// Lays the weights of recurrent layers in one block (RNNImplBase::flatten_parameters() in
// torch/csrc/api/src/nn/modules/rnn.cpp, which looks for CUDA tensors).
#include "tare/trace/flat_weights.h"

#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/cudnn_is_acceptable.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <vector>

#include "tare/trace/recurrent_call.h"

namespace tare::plan {
namespace {

template <class Layer>
void flatten(Layer& layer, RecurrentMode mode) {
  const std::vector<at::Tensor> weights = layer.all_weights();
  const auto type = weights.front().scalar_type();
  if (!std::ranges::all_of(weights, [&](const at::Tensor& weight) {
        return weight.scalar_type() == type && at::cudnn_is_acceptable(weight);
      }))
    return;
  const auto& options = layer.options_base;
  const c10::NoGradGuard no_grad;
  const int64_t each = (options.bias() ? 4 : 2) + (options.proj_size() > 0 ? 1 : 0);
  (void)at::_cudnn_rnn_flatten_weight(
      weights, each, options.input_size(), static_cast<int64_t>(mode), options.hidden_size(),
      options.proj_size(), options.num_layers(), options.batch_first(), options.bidirectional());
}

}  // namespace

void flatten_weights(torch::nn::Module& module) {
  if (auto* lstm = module.as<torch::nn::LSTMImpl>()) return flatten(*lstm, RecurrentMode::lstm);
  if (auto* gru = module.as<torch::nn::GRUImpl>()) return flatten(*gru, RecurrentMode::gru);
  auto* rnn = module.as<torch::nn::RNNImpl>();
  if (!rnn) return;
  const bool relu = std::holds_alternative<torch::enumtype::kReLU>(rnn->options.nonlinearity());
  flatten(*rnn, relu ? RecurrentMode::relu : RecurrentMode::tanh);
}

}  // namespace tare::plan
