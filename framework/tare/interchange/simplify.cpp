// Rewrites operators, one rule after the other.
#include "tare/interchange/simplify.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace tare::interchange {
namespace {

/// Replaces values in everything that reads them.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), makers_(graph.values.size(), kNone) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const size_t result : graph.nodes[n].results) makers_[result] = n;
  }

  /// Returns the node that makes the tensor of an argument; null: no node, or another kind of
  /// argument.
  [[nodiscard]] const Node* maker(const Argument& argument) const {
    const auto* ref = std::get_if<Ref>(&argument);
    return ref && makers_[ref->value] != kNone ? &graph_.nodes[makers_[ref->value]] : nullptr;
  }
  [[nodiscard]] size_t dimensions(const Argument& argument) const {
    return graph_.values[std::get<Ref>(argument).value].sizes.size();
  }
  [[nodiscard]] bool is_weight(const Argument& argument) const {
    const auto* ref = std::get_if<Ref>(&argument);
    return ref && graph_.weight(ref->value);
  }
  [[nodiscard]] size_t uses(size_t value) const {
    size_t count = static_cast<size_t>(std::ranges::count(graph_.outputs, value));
    for (const Node& node : graph_.nodes)
      each_tensor(node, [&](size_t used) { count += used == value ? 1 : 0; });
    return count;
  }
  /// Lets what reads `old` read `now`.
  void replace(size_t old, size_t now) {
    const auto change = [&](Ref& ref) {
      if (ref.value == old) ref.value = now;
    };
    for (Node& node : graph_.nodes)
      for (Argument& argument : node.arguments) {
        if (auto* one = std::get_if<Ref>(&argument)) change(*one);
        if (auto* list = std::get_if<TensorList>(&argument))
          for (auto& item : *list)
            if (auto* ref = std::get_if<Ref>(&item)) change(*ref);
      }
    std::ranges::replace(graph_.outputs, old, now);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  Graph& graph_;
  std::vector<size_t> makers_;
};

void skip_what_does_nothing(Graph& graph) {
  static const std::set<std::string, std::less<>> kNothing{
      "aten::dropout",       "aten::feature_dropout",
      "aten::alpha_dropout", "aten::contiguous",
      "aten::detach",        "aten::alias",
      "aten::clone",         "aten::feature_alpha_dropout"};
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes)
    if (kNothing.contains(node.op))
      rewriter.replace(node.results.at(0), std::get<Ref>(node.arguments.at(0)).value);
}

/// Returns the weight of which an argument is the transposed one; unset: it is none.
std::optional<Ref> transposed_weight(const Rewriter& rewriter, const Argument& argument) {
  const Node* node = rewriter.maker(argument);
  if (!node || node->op != "aten::t" || !rewriter.is_weight(node->arguments[0])) return {};
  return std::get<Ref>(node->arguments[0]);
}

Node linear(const Node& node, Argument input, Ref weight, Argument bias) {
  return {.op = "aten::linear",
          .arguments = {std::move(input), weight, std::move(bias)},
          .results = node.results,
          .layer = node.layer};
}

bool is_one(const Argument& argument) {
  const auto* size = std::get_if<Size>(&argument);
  const auto* number = std::get_if<double>(&argument);
  return (size && *size == Size{.constant = 1}) || (number && *number == 1);
}

void join_linear(Graph& graph) {
  Rewriter rewriter(graph);
  for (Node& node : graph.nodes) {
    if (node.op == "aten::addmm" && is_one(node.arguments[3]) && is_one(node.arguments[4]) &&
        rewriter.dimensions(node.arguments[0]) == 1) {
      if (const auto weight = transposed_weight(rewriter, node.arguments[2]))
        node = linear(node, node.arguments[1], *weight, node.arguments[0]);
    } else if (node.op == "aten::matmul" || node.op == "aten::mm") {
      if (const auto weight = transposed_weight(rewriter, node.arguments[1]))
        node = linear(node, node.arguments[0], *weight, std::monostate());
    }
  }
  for (Node& node : graph.nodes) {
    if (node.str() != "add.Tensor" || !is_one(node.arguments[2])) continue;
    const Node* product = rewriter.maker(node.arguments[0]);
    const bool is_biased = product && product->op == "aten::linear" &&
                           std::holds_alternative<std::monostate>(product->arguments[2]) &&
                           rewriter.uses(product->results[0]) == 1 &&
                           rewriter.is_weight(node.arguments[1]) &&
                           rewriter.dimensions(node.arguments[1]) == 1;
    if (is_biased)
      node = linear(node, product->arguments[0], std::get<Ref>(product->arguments[1]),
                    node.arguments[1]);
  }
}

void reshape_for_view(Graph& graph) {
  for (Node& node : graph.nodes)
    if (node.str() == "view") node.op = "aten::reshape";
}

void remove_unused(Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  for (const size_t output : graph.outputs) used[output] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (std::ranges::any_of(node.results, [&](size_t result) { return used[result]; }))
      each_tensor(node, [&](size_t value) { used[value] = true; });
  }
  std::erase_if(graph.nodes, [&](const Node& node) {
    return std::ranges::none_of(node.results, [&](size_t result) { return used[result]; });
  });
}

}  // namespace

void simplify(Graph& graph) {
  skip_what_does_nothing(graph);
  join_linear(graph);
  reshape_for_view(graph);
  remove_unused(graph);
}

}  // namespace tare::interchange
