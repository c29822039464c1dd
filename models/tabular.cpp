// Builds the network for tables.
#include "models/tabular.h"

#include <algorithm>
#include <cmath>

#include "models/common.h"
#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare::models {
namespace {

constexpr int64_t kExactHalf = 256;  // whole numbers up to here are exact in bfloat16 and float16
constexpr double kEmbeddingDeviation = 0.01;

std::vector<int64_t> hidden_of(const ModelOptions& options) {
  return options.hidden.empty() ? std::vector<int64_t>{200, 100} : options.hidden;
}

std::string last_layer(const ModelOptions& options) {
  return "layers." + std::to_string(hidden_of(options).size());
}

int64_t columns_of(const ModelOptions& options, const TabularOptions& own) {
  const auto& shape = options.sample_shape;
  if (shape.size() == 1 && shape[0] >= std::max<int64_t>(1, std::ssize(own.categories)))
    return shape[0];
  throw ConfigError("models.tabular", "sample_shape", "must be the columns of a row",
                    "a list of one number, at least that of options.categories",
                    c10::str(torch::IntArrayRef(shape)));
}

/// Throws ConfigError unless there is one number, or one for each output.
void check_outputs(const char* field, const PerOutput& given, int64_t outputs) {
  const int64_t count = std::ssize(given.numbers);
  if (count == 1 || count == outputs) return;
  throw ConfigError("models.tabular", field, "must be one number, or one for each output",
                    std::to_string(outputs) + (outputs == 1 ? " number" : " numbers"),
                    std::to_string(count));
}

torch::nn::Embedding embedding(int64_t categories) {
  torch::nn::Embedding layer(categories, embedding_width(categories));
  torch::nn::init::normal_(layer->weight, 0, kEmbeddingDeviation);
  return layer;
}

Chain hidden_layer(int64_t in, int64_t out, double dropout) {
  return Chain(torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false)), torch::nn::ReLU(),
               torch::nn::BatchNorm1d(out), torch::nn::Dropout(dropout));
}

}  // namespace

void from_node(const config::Node& node, PerOutput& value) {
  if (node.kind == config::Kind::sequence)
    value.numbers = config::read<std::vector<double>>(node);
  else
    value.numbers = {config::read<double>(node)};
  if (value.numbers.empty())
    throw ConfigError(node.source, "", "must have a number", "a number, or one for each output",
                      "[]");
  for (const double number : value.numbers)
    if (!std::isfinite(number))
      throw ConfigError(node.source, "", "has a number that is not finite", "finite numbers",
                        config::number_text(number));
}

config::Node to_node(const PerOutput& value) {
  return value.numbers.size() == 1 ? config::to_node(value.numbers.front())
                                   : config::to_node(value.numbers);
}

int64_t embedding_width(int64_t categories) {
  const double rule = std::nearbyint(1.6 * std::pow(static_cast<double>(categories), 0.56));
  return std::min<int64_t>(600, static_cast<int64_t>(rule));
}

TabularImpl::TabularImpl(const ModelOptions& options, const TabularOptions& own)
    : categories(own.categories),
      columns(columns_of(options, own)),
      output_mean(own.output_mean.numbers),
      output_deviation(own.output_deviation.numbers) {
  check_outputs("output_mean", own.output_mean, options.classes);
  check_outputs("output_deviation", own.output_deviation, options.classes);
  const size_t longest = std::max(output_mean.size(), output_deviation.size());
  for (auto* list : {&output_mean, &output_deviation})
    if (list->size() < longest) list->assign(longest, list->front());
  const int64_t numbers = columns - std::ssize(categories);
  int64_t in = numbers;
  for (const int64_t count : categories) {
    embeds->push_back(embedding(count));
    in += embedding_width(count);
  }
  register_module("embeds", embeds);
  if (numbers > 0) bn_cont = register_module("bn_cont", torch::nn::BatchNorm1d(numbers));
  for (const int64_t out : hidden_of(options)) {
    layers->push_back(hidden_layer(in, out, options.dropout));
    in = out;
  }
  layers->push_back(Chain(torch::nn::Linear(in, options.classes)));
  register_module("layers", layers);
}

torch::Tensor TabularImpl::forward(const torch::Tensor& rows) {
  if (rows.dim() != 2 || rows.size(1) != columns)
    throw ShapeError("models.tabular", "rows [batch, " + std::to_string(columns) + "]",
                     c10::str(rows.sizes()));
  const int64_t most = categories.empty() ? 0 : *std::ranges::max_element(categories);
  if (rows.element_size() < 4 && most > kExactHalf)
    throw ShapeError("models.tabular",
                     "rows of float32, which can hold " + std::to_string(most) + " codes",
                     c10::toString(rows.scalar_type()));
  std::vector<torch::Tensor> parts;
  for (size_t i = 0; i < categories.size(); ++i) {
    const auto codes = rows.select(1, static_cast<int64_t>(i)).to(torch::kLong);
    parts.push_back(embeds->ptr<torch::nn::EmbeddingImpl>(i)->forward(codes));
  }
  if (!bn_cont.is_empty()) {
    const int64_t first = std::ssize(categories);
    parts.push_back(bn_cont(rows.narrow(1, first, columns - first).contiguous()));
  }
  const torch::Tensor outputs = layers->forward(torch::cat(parts, /*dim=*/1));
  if (output_mean.size() == 1) {
    if (output_mean[0] == 0 && output_deviation[0] == 1) return outputs;
    return outputs.to(torch::kFloat) * output_deviation[0] + output_mean[0];
  }
  // Numbers of the host, because a buffer would be a tensor that fastai's files lack.
  std::vector<torch::Tensor> numbers = outputs.to(torch::kFloat).unbind(1);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = numbers[i] * output_deviation[i] + output_mean[i];
  return torch::stack(numbers, /*dim=*/1);
}

namespace {

Model make_tabular(const ModelOptions& options, const TabularOptions& own) {
  Tabular tabular(options, own);
  LayerGroup embedding{"embedding", {}};
  if (!own.categories.empty()) embedding.members.emplace_back("embeds");
  if (!tabular->bn_cont.is_empty()) embedding.members.emplace_back("bn_cont");
  std::vector<LayerGroup> groups{std::move(embedding)};
  for (size_t i = 0; i <= hidden_of(options).size(); ++i) {
    const std::string layer = "layers." + std::to_string(i);
    groups.push_back({layer, {layer}});
  }
  return Model(std::move(tabular), std::move(groups));
}

}  // namespace

void add_tabular(Registry& all) {
  all.add<TabularOptions>(
      "tabular", "classifies rows of categories and numbers, with fastai's parameter names",
      [](const TabularOptions& own) {
        return Family{.sample_shape = {10},
                      .options = {"hidden", "dropout"},
                      .head = last_layer({}),
                      .make = [own](const ModelOptions& o) { return make_tabular(o, own); },
                      .head_for = last_layer};
      });
}

}  // namespace tare::models
