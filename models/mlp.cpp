// Builds the multi-layer perceptron.
#include "models/mlp.h"

#include <sstream>

#include "models/common.h"
#include "tare/base/error.h"

namespace tare::models {
namespace {

int64_t features_of(const ModelOptions& options) {
  int64_t all = options.sample_shape.empty() ? 0 : 1;
  for (const int64_t side : options.sample_shape)
    if (side < 1 || __builtin_mul_overflow(all, side, &all)) all = 0;
  if (all == 0)
    throw ConfigError("models.mlp", "sample_shape", "must hold the sizes of a sample",
                      "at least one size, each >= 1, with a product below 2^63",
                      c10::str(torch::IntArrayRef(options.sample_shape)));
  return all;
}

}  // namespace

MlpImpl::MlpImpl(const ModelOptions& options) : dropout(options.dropout) {
  int64_t features = features_of(options);
  const auto sizes = options.hidden.empty() ? std::vector<int64_t>{128} : options.hidden;
  for (const int64_t size : sizes) {
    if (size < 1)
      throw ConfigError("models.mlp", "hidden", "must have sizes >= 1", "", std::to_string(size));
    const std::string name = "hidden" + std::to_string(hidden.size());
    hidden.push_back(register_module(name, torch::nn::Linear(features, size)));
    features = size;
  }
  head = register_module("head", torch::nn::Linear(features, options.classes));
}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) {
  torch::Tensor y = x.dim() > 2 ? x.flatten(1) : x;
  const int64_t wanted = hidden.front()->options.in_features();
  if (y.dim() != 2 || y.size(1) != wanted) {
    std::ostringstream got;
    got << x.sizes();
    throw ShapeError("models.mlp",
                     "[batch, ...] with " + std::to_string(wanted) + " features a sample",
                     got.str());
  }
  for (auto& layer : hidden) y = torch::relu(layer(y));
  return head(drop(y, dropout, is_training()));
}

void add_mlp(Registry& all) {
  Family family{.name = "mlp",
                .summary = "classifies images or rows by a multi-layer perceptron with ReLU",
                .sample_shape = {1, 28, 28},
                .options = {"hidden", "dropout"},
                .head = "head",
                .make = {}};
  add(all, make_family<Mlp>(std::move(family), {}));  // every layer is a group
}

}  // namespace tare::models
