// Builds the recurrent classifier of sequences.
#include "models/lstm.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "models/common.h"
#include "tare/base/error.h"

namespace tare::models {
namespace {

constexpr int64_t kVocabulary = 256;  // bytes
constexpr int64_t kLstmWidth = 64, kLstmLayers = 1;

[[noreturn]] void refuse(const char* what, const torch::Tensor& got) {
  std::ostringstream text;
  text << got.sizes();
  throw ShapeError("models.lstm", what, text.str());
}

/// Lays the weights on a card in one block, as cuDNN needs them, where something has moved them;
/// also in a plan for a card, whose tensors are on the meta device.
void flatten(const torch::nn::LSTM& layers) {
  const std::vector<torch::Tensor> weights = layers->all_weights();
  const auto block = [](const torch::Tensor& weight) {
    return weight.storage().unsafeGetStorageImpl();
  };
  if (!torch::cudnn_is_acceptable(weights.front())) return;
  if (std::ranges::all_of(weights, [&](const torch::Tensor& weight) {
        return block(weight) == block(weights.front());
      }))
    return;
  constexpr int64_t kMode = 2, kOfLayer = 4;  // an LSTM, as cuDNN numbers it; weights and biases
  const torch::NoGradGuard no_grad;
  const torch::DeviceGuard device(weights.front().device());
  const auto& options = layers->options;
  (void)torch::_cudnn_rnn_flatten_weight(
      weights, kOfLayer, options.input_size(), kMode, options.hidden_size(), /*proj_size=*/0,
      options.num_layers(), options.batch_first(), options.bidirectional());
}

}  // namespace

LstmImpl::LstmImpl(const ModelOptions& options) : dropout(options.dropout) {
  if (options.sample_shape.size() != 1)
    throw ConfigError("models.lstm", "sample_shape", "must be the length of the longest sequence",
                      "a list of one number >= 1, such as [256]",
                      c10::str(torch::IntArrayRef(options.sample_shape)));
  const int64_t width = or_default(options.width, kLstmWidth);
  const int64_t count = or_default(options.layers, kLstmLayers);
  embedding = register_module("embedding", torch::nn::Embedding(kVocabulary, width));
  layers = register_module(
      "layers",
      torch::nn::LSTM(torch::nn::LSTMOptions(width, width).num_layers(count).batch_first(true)));
  head = register_module("head", torch::nn::Linear(width, options.classes));
}

torch::Tensor LstmImpl::forward(const torch::Tensor& tokens, const torch::Tensor& ends) {
  if (tokens.dim() != 2) refuse("tokens [batch, longest]", tokens);
  const bool is_mask = ends.dim() == 2;
  if (!is_mask && ends.dim() != 1) refuse("lengths [batch] or a mask [batch, longest]", ends);
  const torch::Tensor lengths = is_mask ? ends.sum(1) : ends;
  flatten(layers);
  const torch::Tensor states = std::get<0>(layers(embedding(tokens)));
  const torch::Tensor last = (lengths - 1).view({-1, 1, 1}).expand({-1, 1, states.size(2)});
  return head(drop(states.gather(1, last).squeeze(1), dropout, is_training()));
}

void add_lstm(Registry& all) {
  Family family{.name = "lstm",
                .summary = "classifies sequences of bytes by an embedding, LSTM layers and a head",
                .sample_shape = {256},
                .options = {"width", "layers", "dropout"},
                .head = "head",
                .make = {},
                .vocabulary = kVocabulary};
  add(all, make_family<Lstm>(std::move(family), {}));  // every layer is a group
}

}  // namespace tare::models
