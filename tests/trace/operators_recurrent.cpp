// Recurrent layers.
#include "trace/operator_cases.h"

namespace tare::plan {
namespace {

/// A layer of 12 inputs and 7 hidden units over sequences, the output used; also with what it says
/// of the last step.
template <class Layer, class Options>
void add_layer(Cases& each, const std::string& name, const Options& options,
               const std::vector<int64_t>& sizes = {5, 3, 12}) {
  each.function(name, sizes,
                [=](const Tensor& x) { return std::get<0>(Layer(options)->forward(x)); });
  each.add(name + "_and_state", [=] {
    const auto result = Layer(options)->forward(in(sizes));
    auto sum = std::get<0>(result).sum();
    if constexpr (std::is_same_v<Layer, nn::LSTM>)
      sum = sum + std::get<0>(std::get<1>(result)).sum() + std::get<1>(std::get<1>(result)).sum();
    else
      sum = sum + std::get<1>(result).sum();
    sum.backward();
  });
  each.add(name + "_last_step", [=] {
    const auto last = std::get<0>(Layer(options)->forward(torch::rand(sizes)))[-1];
    last.sum().backward();
  });
}

template <class Layer, class Options>
void add_layers_of(Cases& each, const std::string& name, const Options& options) {
  add_layer<Layer>(each, name, options);
  add_layer<Layer>(each, name + "_plain", Options(options).bias(false));
  add_layer<Layer>(each, name + "_deep", Options(options).num_layers(3));
  add_layer<Layer>(each, name + "_dropout", Options(options).num_layers(2).dropout(0.5));
  add_layer<Layer>(each, name + "_both_ways", Options(options).bidirectional(true));
  add_layer<Layer>(each, name + "_both_ways_deep",
                   Options(options).bidirectional(true).num_layers(2).dropout(0.5).bias(false));
  add_layer<Layer>(each, name + "_batch_first", Options(options).batch_first(true));
}

}  // namespace

void add_recurrent(Cases& each) {
  add_layers_of<nn::LSTM>(each, "lstm", nn::LSTMOptions(12, 7));
  add_layers_of<nn::GRU>(each, "gru", nn::GRUOptions(12, 7));
  add_layers_of<nn::RNN>(each, "rnn", nn::RNNOptions(12, 7));
  add_layer<nn::RNN>(each, "rnn_relu", nn::RNNOptions(12, 7).nonlinearity(torch::kReLU));
  // Small enough to be run as they are, and predicted from smaller ones.
  const std::vector<std::pair<int64_t, int64_t>> sizes{{1, 1},   {2, 64},  {17, 65},  {3, 100},
                                                       {70, 7},  {150, 3}, {600, 16}, {5, 130},
                                                       {4, 700}, {40, 256}};
  for (const auto& [steps, samples] : sizes)
    add_layer<nn::LSTM>(each, "lstm_" + std::to_string(steps) + "x" + std::to_string(samples),
                        nn::LSTMOptions(12, 20), {steps, samples, 12});
  add_layer<nn::LSTM>(each, "lstm_wide", nn::LSTMOptions(28, 128), {28, 300, 28});
}

}  // namespace tare::plan
