// Finds batch norms behind layers, and gives the layers other weights.
#include "tare/interchange/fold_norms.h"

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tare::interchange {
namespace {

/// Lists the places of the arguments of aten::batch_norm and of the layers.
struct Place {
  static constexpr size_t kInput = 0, kWeight = 1, kBias = 2, kMean = 3, kVariance = 4,
                          kTraining = 5, kEps = 7;
};

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph), uses_(graph.values.size(), 0) {
    for (const Value& value : graph.values) names_.insert(value.name);
    for (const Weight& weight : graph.weights) names_.insert(weight.name);
    for (const Node& node : graph.nodes) each_tensor(node, [&](size_t value) { ++uses_[value]; });
    for (const size_t output : graph.outputs) ++uses_[output];
  }

  int64_t run() {
    std::set<size_t> folded;  // places of norms
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (fold(graph_.nodes[n])) folded.insert(n);
    for (const size_t n : folded) forget(graph_.nodes[n]);
    for (auto it = folded.rbegin(); it != folded.rend(); ++it)
      graph_.nodes.erase(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(*it));
    return std::ssize(folded);
  }

 private:
  /// Returns the weight that an argument is; null: it is none.
  Weight* weight_of(const Argument& argument) {
    const auto* ref = std::get_if<Ref>(&argument);
    if (!ref) return nullptr;
    const auto found = std::ranges::find(graph_.weights, ref->value, &Weight::value);
    return found == graph_.weights.end() ? nullptr : &*found;
  }

  /// Returns the layer whose output is the input of the norm, if the norm can be folded into it.
  Node* layer_of(const Node& norm) {
    const auto* input = std::get_if<Ref>(&norm.arguments[Place::kInput]);
    if (!input || uses_[input->value] != 1) return nullptr;
    const auto layer = std::ranges::find_if(graph_.nodes, [&](const Node& node) {
      return node.results.size() == 1 && node.results.front() == input->value;
    });
    if (layer == graph_.nodes.end() || !layer->overload.empty()) return nullptr;
    const bool convolves =
        layer->op == "aten::conv1d" || layer->op == "aten::conv2d" || layer->op == "aten::conv3d";
    // A batch norm would normalise the steps of [samples, steps, features].
    const bool is_flat =
        layer->op == "aten::linear" && graph_.values[input->value].sizes.size() == 2;
    const Weight* weight = weight_of(layer->arguments[Place::kWeight]);
    const bool has_bias = !std::holds_alternative<std::monostate>(layer->arguments[Place::kBias]);
    const Weight* bias = weight_of(layer->arguments[Place::kBias]);
    const bool is_own =
        weight && uses_[weight->value] == 1 && (!has_bias || (bias && uses_[bias->value] == 1));
    return (convolves || is_flat) && is_own ? &*layer : nullptr;
  }

  bool fold(Node& norm) {
    if (norm.op != "aten::batch_norm" || std::get<bool>(norm.arguments[Place::kTraining]))
      return false;
    const Weight *mean = weight_of(norm.arguments[Place::kMean]),
                 *variance = weight_of(norm.arguments[Place::kVariance]);
    const auto* eps = std::get_if<double>(&norm.arguments[Place::kEps]);
    Node* layer = mean && variance && eps ? layer_of(norm) : nullptr;
    if (!layer) return false;
    const auto wide = [&](const Weight* weight) {
      return weight ? weight->tensor.detach().to(c10::kDouble) : at::Tensor();
    };
    at::Tensor scale = at::rsqrt(at::add(wide(variance), *eps));
    if (const at::Tensor gamma = wide(weight_of(norm.arguments[Place::kWeight])); gamma.defined())
      scale = at::mul(scale, gamma);
    const at::Tensor before = wide(weight_of(layer->arguments[Place::kBias]));
    at::Tensor shift =
        at::mul(at::sub(before.defined() ? before : at::zeros_like(scale), wide(mean)), scale);
    if (const at::Tensor beta = wide(weight_of(norm.arguments[Place::kBias])); beta.defined())
      shift = at::add(shift, beta);
    Weight* weight = weight_of(layer->arguments[Place::kWeight]);
    const at::Tensor old = weight->tensor.detach();
    std::vector<int64_t> rows(static_cast<size_t>(old.dim()), 1);
    rows.front() = -1;
    weight->tensor = at::mul(old.to(c10::kDouble), scale.view(rows)).to(old.scalar_type());
    const at::Tensor bias = shift.to(old.scalar_type());
    if (Weight* own = weight_of(layer->arguments[Place::kBias]))
      own->tensor = bias;
    else
      layer->arguments[Place::kBias] = new_bias(weight->name, bias);
    // The layer makes what the norm made.
    uses_[layer->results.front()] = 0;
    layer->results = norm.results;
    return true;
  }

  Ref new_bias(const std::string& of_weight, const at::Tensor& tensor) {
    const size_t dot = of_weight.rfind('.');
    const std::string wish =
        (dot == std::string::npos ? "" : of_weight.substr(0, dot + 1)) + "bias";
    const std::string name = take_name(names_, wish);
    Value value{.name = take_name(names_, plain_name(name)), .type = tensor.scalar_type()};
    value.sizes.push_back({.constant = tensor.size(0)});
    const size_t place = graph_.values.size();
    graph_.weights.push_back({.name = name, .value = place, .tensor = tensor});
    graph_.values.push_back(std::move(value));
    uses_.push_back(1);
    return {place};
  }

  /// Removes the tensors of a norm, which nothing else reads, and what counts its batches.
  void forget(const Node& norm) {
    const Weight* mean = weight_of(norm.arguments[Place::kMean]);
    if (!mean) return;
    const std::string layer = mean->name.substr(0, mean->name.rfind('.') + 1);
    std::set<size_t> read;
    each_tensor(norm, [&](size_t value) {
      if (uses_[value] == 1) read.insert(value);
    });
    std::erase_if(graph_.weights, [&](const Weight& one) {
      const bool counts = uses_[one.value] == 0 && one.name == layer + "num_batches_tracked";
      return counts || read.contains(one.value);
    });
  }

  Graph& graph_;
  std::vector<size_t> uses_;  // of each value
  std::set<std::string> names_;
};

}  // namespace

int64_t fold_norms(Graph& graph) { return Folder(graph).run(); }

}  // namespace tare::interchange
