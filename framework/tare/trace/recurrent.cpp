// Recurrent layers, on a card by cuDNN (card_recurrent.h), and as the host does them: GRU and RNN
// step by step, after one product for all inputs of a direction; LSTM in oneDNN, layer by layer.
// Tensors live as long as in LibTorch, so that the order of allocations is that of LibTorch.
#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tare/trace/card_recurrent.h"
#include "tare/trace/composites.h"
#include "tare/trace/dispatch_key.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;
using at::TensorList;

/// The weights of one layer in one direction; biases may be undefined.
struct Weights {
  Tensor input, hidden, input_bias, hidden_bias;
};

std::vector<Weights> weights_of(TensorList params, bool has_biases) {
  const size_t each = has_biases ? 4 : 2;
  std::vector<Weights> all;
  for (size_t i = 0; i + each <= params.size(); i += each)
    all.push_back({params[i], params[i + 1], has_biases ? params[i + 2] : Tensor(),
                   has_biases ? params[i + 3] : Tensor()});
  return all;
}

Tensor products_of(const Tensor& input, const Weights& weights) {
  return at::linear(input, weights.input, weights.input_bias);
}

/// A function that computes one step; `input`: its products with the weights.
using Step = Tensor (*)(const Tensor& input, const Tensor& hidden, const Weights& weights);

Tensor gru_step(const Tensor& input, const Tensor& hidden, const Weights& weights) {
  const auto from_input = input.unsafe_chunk(3, 1);
  const auto from_hidden =
      at::linear(hidden, weights.hidden, weights.hidden_bias).unsafe_chunk(3, 1);
  const Tensor reset = from_hidden[0].add_(from_input[0]).sigmoid_();
  const Tensor update = from_hidden[1].add_(from_input[1]).sigmoid_();
  const Tensor candidate = from_input[2].add(from_hidden[2].mul_(reset)).tanh_();
  return at::sub(hidden, candidate).mul_(update).add_(candidate);
}

template <auto kActivation>
Tensor rnn_step(const Tensor& input, const Tensor& hidden, const Weights& weights) {
  return kActivation(at::linear(hidden, weights.hidden, weights.hidden_bias).add_(input));
}

std::vector<Tensor> outputs_of(Step step, const std::vector<Tensor>& inputs, Tensor hidden,
                               const Weights& weights) {
  std::vector<Tensor> outputs;
  for (const Tensor& input : inputs) {
    hidden = step(input, hidden, weights);
    outputs.push_back(hidden);
  }
  return outputs;
}

Tensor one_way(Step step, const Tensor& input, const Tensor& hidden, const Weights& weights,
               std::vector<Tensor>& last) {
  const Tensor products = products_of(input, weights);
  const auto outputs = outputs_of(step, products.unbind(0), hidden, weights);
  last.push_back(outputs.back());
  return at::stack(outputs, 0);
}

Tensor both_ways(Step step, const Tensor& input, const Tensor* hidden, const Weights* weights,
                 std::vector<Tensor>& last) {
  Tensor products = products_of(input, weights[0]);
  std::vector<Tensor> inputs = products.unbind(0);
  const auto forward = outputs_of(step, inputs, hidden[0], weights[0]);
  const Tensor forward_output = at::stack(forward, 0);
  products = products_of(input, weights[1]);
  inputs = products.unbind(0);
  std::ranges::reverse(inputs);
  auto backward = outputs_of(step, inputs, hidden[1], weights[1]);
  last.insert(last.end(), {forward.back(), backward.back()});
  std::ranges::reverse(backward);
  const Tensor backward_output = at::stack(backward, 0);
  return at::cat({forward_output, backward_output}, forward_output.dim() - 1);
}

using Recurrent = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, TensorList, bool,
                                                 int64_t, double, bool, bool, bool);

template <RecurrentMode kMode, Step kStep, Recurrent kNative>
std::tuple<Tensor, Tensor> recurrent(const Tensor& input, const Tensor& hidden, TensorList params,
                                     bool has_biases, int64_t layers, double dropout, bool train,
                                     bool bidirectional, bool batch_first) {
  if (!planning())
    return kNative(input, hidden, params, has_biases, layers, dropout, train, bidirectional,
                   batch_first);
  if (for_card()) {
    auto [of_card, last_of_card, none] =
        card_recurrent(kMode, input, hidden, {}, params, has_biases, layers, dropout, train,
                       bidirectional, batch_first);
    return {of_card, last_of_card};
  }
  const auto weights = weights_of(params, has_biases);
  const auto first = hidden.unbind(0);
  std::vector<Tensor> last;
  Tensor output = batch_first ? input.transpose(0, 1) : input;
  for (size_t layer = 0; layer < static_cast<size_t>(layers); ++layer) {
    output = bidirectional ? both_ways(kStep, output, &first[2 * layer], &weights[2 * layer], last)
                           : one_way(kStep, output, first[layer], weights[layer], last);
    if (dropout != 0 && train && layer + 1 < static_cast<size_t>(layers))
      output = at::dropout(output, dropout, true);
  }
  const Tensor final_hidden = at::stack(last, 0);
  return {batch_first ? output.transpose(0, 1) : output, final_hidden};
}

/// Returns the bias; without biases LibTorch hands over zeros, as many as weights.
Tensor bias_or_zeros(const Tensor& bias, const Tensor& weight) {
  return bias.defined() ? bias : at::zeros(weight.sizes(), weight.options());
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& sequence, TensorList state, TensorList params,
                                        bool has_biases, int64_t layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first) {
  if (!planning())
    return at::native::lstm(sequence, state, params, has_biases, layers, dropout, train,
                            bidirectional, batch_first);
  if (for_card())
    return card_recurrent(RecurrentMode::lstm, sequence, state[0], state[1], params, has_biases,
                          layers, dropout, train, bidirectional, batch_first);
  const bool projected = state[0].size(2) != state[1].size(2);
  if (projected || sequence.scalar_type() != at::kFloat || !at::globalContext().userEnabledMkldnn())
    throw NotPlannable("aten::lstm", "is known as oneDNN does it: in float32, without projections",
                       "plan in float32 without projections");
  const Tensor dense = (batch_first ? sequence.transpose(0, 1) : sequence).contiguous();
  const Tensor hidden = state[0].contiguous(), cell = state[1].contiguous();
  const auto weights = weights_of(params, has_biases);
  const size_t directions = bidirectional ? 2 : 1;
  Tensor input = dense;
  std::vector<Tensor> outputs(directions), last_hidden(weights.size()), last_cell(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weights& w = weights[i];
    const size_t direction = i % directions;
    const auto index = static_cast<int64_t>(i);
    {
      const Tensor hidden_bias = bias_or_zeros(w.hidden_bias, w.hidden);
      const Tensor input_bias = bias_or_zeros(w.input_bias, w.input);
      std::tie(outputs[direction], last_hidden[i], last_cell[i], std::ignore) =
          at::mkldnn_rnn_layer(input, w.input, w.hidden, input_bias, hidden_bias, hidden[index],
                               cell[index], direction > 0, {}, kLstm, hidden.size(2), layers,
                               has_biases, bidirectional, batch_first, train);
    }
    if (direction + 1 < directions) continue;
    input = bidirectional ? at::cat(outputs, -1) : outputs[0];
    if (dropout != 0 && train && i + 1 < weights.size()) input = at::dropout(input, dropout, true);
  }
  const Tensor final_hidden = at::stack(last_hidden, 0), final_cell = at::stack(last_cell, 0);
  return {batch_first ? input.transpose(0, 1) : input, final_hidden, final_cell};
}

/// The lengths of a packed sequence are values, which meta tensors do not have.
template <auto kNative>
struct Packed;
template <class Result, class... Arguments, Result (*kNative)(Arguments...)>
struct Packed<kNative> {
  static Result run(Arguments... arguments) {
    if (planning())
      throw NotPlannable("a packed sequence", "has lengths that shapes do not show",
                         "plan with padded sequences");
    return kNative(arguments...);
  }
};

using PackedLstm = std::tuple<Tensor, Tensor, Tensor> (*)(const Tensor&, const Tensor&, TensorList,
                                                          TensorList, bool, int64_t, double, bool,
                                                          bool);
using PackedRecurrent = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const Tensor&,
                                                       TensorList, bool, int64_t, double, bool,
                                                       bool);

template <RecurrentMode kMode, Step kStep, Recurrent kPadded, PackedRecurrent kPacked>
void add(torch::Library& library, const std::string& name) {
  library.impl((name + ".input").c_str(), &recurrent<kMode, kStep, kPadded>);
  library.impl((name + ".data").c_str(), &Packed<kPacked>::run);
}

}  // namespace

void add_recurrent_composites(torch::Library& library) {
  namespace native = at::native;
  library.impl("lstm.input", &lstm);
  library.impl("lstm.data", &Packed<static_cast<PackedLstm>(&native::lstm)>::run);
  add<RecurrentMode::gru, &gru_step, &native::gru, &native::gru>(library, "gru");
  add<RecurrentMode::tanh, &rnn_step<&at::tanh>, &native::rnn_tanh, &native::rnn_tanh>(library,
                                                                                       "rnn_tanh");
  add<RecurrentMode::relu, &rnn_step<&at::relu>, &native::rnn_relu, &native::rnn_relu>(library,
                                                                                       "rnn_relu");
}

}  // namespace tare::plan
