// Models whose graphs the tests ask for.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "tare/config/node.h"
#include "tare/interchange/graph.h"
#include "tare/interchange/simplify.h"
#include "tare/interchange/trace_graph.h"
#include "tare/model/registry.h"

namespace tare::interchange {

/// Is a model of the registry, with the inputs that it takes.
struct ZooCase {
  std::string name{};
  ModelOptions options{};
  std::vector<GraphInput> inputs{};
  std::string model{};  ///< of the registry; empty: `name`
  [[nodiscard]] Model made() const { return models::make(model.empty() ? name : model, options); }
};

/// Returns a small model of each family.
inline std::vector<ZooCase> zoo_cases() {
  const auto image = [](int64_t channels, int64_t side, const std::string& name = "input") {
    return GraphInput{.name = name, .sample_shape = {channels, side, side}};
  };
  const GraphInput tokens{.type = torch::kLong, .sample_shape = {16}, .length = 0};
  return {
      {"mlp",
       {.classes = 5, .sample_shape = {12}, .hidden = {8, 8}, .dropout = 0.5},
       {{.sample_shape = {12}}}},
      {"convnet", {.classes = 5, .sample_shape = {3, 32, 32}}, {image(3, 32)}},
      {"resnet9", {.classes = 5, .sample_shape = {3, 32, 32}}, {image(3, 32)}},
      {"resnet18", {.classes = 5, .sample_shape = {3, 32, 32}, .width = 8}, {image(3, 32)}},
      {"resnet50", {.classes = 5, .sample_shape = {3, 32, 32}, .width = 8}, {image(3, 32)}},
      {"mobilenet_v3_small", {.classes = 5, .sample_shape = {3, 64, 64}}, {image(3, 64)}},
      {"mobilenet_v3_large", {.classes = 5, .sample_shape = {3, 64, 64}}, {image(3, 64)}},
      {"unet", {.classes = 3, .sample_shape = {3, 32, 32}, .width = 4}, {image(3, 32)}},
      {"unet_of_odd_sides",
       {.classes = 3,
        .sample_shape = {3, 37, 41},
        .width = 4,
        .options = {config::parse_text("{bilinear: true}", "test")}},
       {{.sample_shape = {3, 37, 41}}},
       "unet"},
      {"vit",
       {.classes = 5, .sample_shape = {3, 32, 32}, .width = 16, .layers = 2, .heads = 2},
       {image(3, 32)}},
      {"gpt",
       {.classes = 20, .sample_shape = {16}, .width = 32, .layers = 2, .heads = 2},
       {tokens}},
      {"lstm",
       {.classes = 3, .sample_shape = {16}, .width = 8, .layers = 2},
       {tokens, {.name = "ends", .type = torch::kLong}}},
      {"lstm_of_masks",
       {.classes = 3, .sample_shape = {16}, .width = 8},
       {tokens, {.name = "mask", .type = torch::kBool, .sample_shape = {16}, .length = 0}},
       "lstm"},
      {"rows_of_numbers", {.classes = 2, .sample_shape = {5}}, {{.sample_shape = {5}}}, "tabular"},
      {"rows_of_categories",
       {.classes = 2,
        .sample_shape = {5},
        .options = {config::parse_text("{categories: [20, 30], output_mean: [1, 2], "
                                       "output_deviation: [3, 4]}",
                                       "test")}},
       {{.name = "rows", .sample_shape = {5}}},
       "tabular"},
      {"siamese",
       {.classes = 1, .sample_shape = {1, 28, 28}, .width = 4},
       {image(1, 28, "left"), image(1, 28, "right")}},
  };
}

/// Returns inputs that a graph takes, with these sizes.
inline std::vector<torch::Tensor> inputs_for(const Graph& graph, const AnySizes& sizes) {
  std::vector<torch::Tensor> all;
  for (const size_t input : graph.inputs) {
    const Value& value = graph.values[input];
    std::vector<int64_t> shape;
    for (const Size& size : value.sizes) shape.push_back(size.at(sizes));
    if (value.name == "rows")
      all.push_back(torch::randint(20, shape));
    else if (value.type == torch::kBool)
      all.push_back(torch::ones(shape));
    else if (value.type == torch::kLong)
      all.push_back(shape.size() == 1 ? torch::randint(1, sizes.length + 1, shape)
                                      : torch::randint(20, shape));
    else
      all.push_back(torch::randn(shape));
    all.back() = all.back().to(value.type);
  }
  return all;
}

/// Returns the output of a model for these inputs.
inline torch::Tensor output_of(const Model& model, const std::vector<torch::Tensor>& inputs) {
  const torch::NoGradGuard without_gradients;
  NamedTensors named;
  for (const torch::Tensor& input : inputs) named.push_back({"input", input});
  return model.forward(Batch(std::move(named), {})).front();
}

/// Returns the simplified graph of a case, whose model is in evaluation mode afterwards.
inline Graph graph_of(Model& model, const std::vector<GraphInput>& inputs) {
  model.train(false);
  Graph graph = trace_graph(model, inputs);
  simplify(graph);
  return graph;
}

/// Returns a model of one function of a tensor.
struct FunctionImpl : torch::nn::Module {
  explicit FunctionImpl(std::function<torch::Tensor(const torch::Tensor&)> f)
      : function(std::move(f)) {
    weight = register_parameter("weight", torch::rand({4}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return function(x); }
  std::function<torch::Tensor(const torch::Tensor&)> function;
  torch::Tensor weight;
};
TORCH_MODULE(Function);

}  // namespace tare::interchange
