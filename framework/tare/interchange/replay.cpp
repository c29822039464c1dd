// Calls the operators of a graph through LibTorch's dispatcher.
#include "tare/interchange/replay.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "tare/base/error.h"

namespace tare::interchange {
namespace {

/// Makes the arguments of a call.
struct ToIValue {
  const std::vector<at::Tensor>& tensors;  // by value of the graph
  const AnySizes& sizes;

  c10::IValue operator()(std::monostate) const { return {}; }
  c10::IValue operator()(Ref ref) const { return tensors[ref.value]; }
  c10::IValue operator()(const TensorList& list) const {
    c10::List<std::optional<at::Tensor>> some;
    c10::List<at::Tensor> all;
    for (const auto& item : list) {
      const auto* ref = std::get_if<Ref>(&item);
      some.push_back(ref ? std::optional(tensors[ref->value]) : std::nullopt);
      if (ref) all.push_back(tensors[ref->value]);
    }
    return all.size() == some.size() ? c10::IValue(all) : c10::IValue(some);
  }
  c10::IValue operator()(const Size& size) const { return size.at(sizes); }
  c10::IValue operator()(const std::vector<Size>& list) const {
    c10::List<int64_t> numbers;
    for (const Size& size : list) numbers.push_back(size.at(sizes));
    return numbers;
  }
  c10::IValue operator()(const std::vector<bool>& list) const {
    c10::List<bool> flags;
    for (const bool flag : list) flags.push_back(flag);
    return flags;
  }
  c10::IValue operator()(const auto& other) const { return other; }
};

/// Holds the tensors of a graph while it is computed.
class Player {
 public:
  Player(const Graph& graph, const std::vector<at::Tensor>& inputs)
      : graph_(graph), tensors_(graph.values.size()), last_use_(graph.values.size(), 0) {
    sizes_ = sizes_of(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) tensors_[graph.inputs[i]] = inputs[i];
    for (const Weight& weight : graph.weights) tensors_[weight.value] = weight.tensor;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      each_tensor(graph.nodes[n], [&](size_t value) { last_use_[value] = n; });
    for (const size_t output : graph.outputs) last_use_[output] = graph.nodes.size();
  }

  std::vector<at::Tensor> run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      call(graph_.nodes[n]);
      each_tensor(graph_.nodes[n], [&](size_t value) {
        if (last_use_[value] == n) tensors_[value].reset();
      });
    }
    std::vector<at::Tensor> outputs;
    for (const size_t output : graph_.outputs) outputs.push_back(tensors_[output]);
    return outputs;
  }

 private:
  [[nodiscard]] AnySizes sizes_of(const std::vector<at::Tensor>& inputs) const {
    if (inputs.size() != graph_.inputs.size())
      throw ShapeError("interchange.replay", std::to_string(graph_.inputs.size()) + " inputs",
                       std::to_string(inputs.size()));
    AnySizes sizes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value& value = graph_.values[graph_.inputs[i]];
      for (size_t d = 0; d < value.sizes.size() && d < static_cast<size_t>(inputs[i].dim()); ++d) {
        if (value.sizes[d] == Size{.batch = 1})
          sizes.batch = inputs[i].size(static_cast<int64_t>(d));
        if (value.sizes[d] == Size{.length = 1})
          sizes.length = inputs[i].size(static_cast<int64_t>(d));
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value& value = graph_.values[graph_.inputs[i]];
      if (inputs[i].sizes() != at::IntArrayRef(shape_of(value, sizes)) ||
          inputs[i].scalar_type() != value.type)
        throw ShapeError("interchange.replay",
                         value.name + " of shape " +
                             c10::str(at::IntArrayRef(shape_of(value, sizes))) + " and dtype " +
                             c10::toString(value.type),
                         c10::str(inputs[i].sizes()) + " of " + inputs[i].toString());
    }
    return sizes;
  }

  void call(const Node& node) {
    const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(node.op.c_str(), node.overload.c_str());
    torch::jit::Stack stack;
    const auto& parameters = op.schema().arguments();
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      c10::IValue argument = std::visit(ToIValue{tensors_, sizes_}, node.arguments[i]);
      // A list of tensors without a gap is one of optional tensors where the operator takes those.
      const auto list = parameters[i].type()->cast<c10::ListType>();
      if (argument.isTensorList() && list &&
          list->getElementType()->kind() == c10::TypeKind::OptionalType) {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const at::Tensor& tensor : argument.toTensorVector()) tensors.push_back(tensor);
        argument = tensors;
      }
      stack.push_back(std::move(argument));
    }
    op.callBoxed(stack);
    size_t at = 0;
    for (const c10::IValue& result : stack) {
      if (result.isTensorList()) {
        for (const at::Tensor& tensor : result.toTensorVector()) keep(node, at++, tensor);
      } else {
        keep(node, at++, result.toTensor());
      }
    }
  }
  void keep(const Node& node, size_t result, const at::Tensor& tensor) {
    tensors_.at(node.results.at(result)) = tensor;
  }

  const Graph& graph_;
  AnySizes sizes_{};
  std::vector<at::Tensor> tensors_;  // by value; undefined: not made yet, or not read any more
  std::vector<size_t> last_use_;     // by value: the node that reads it last
};

}  // namespace

std::vector<int64_t> shape_of(const Value& value, const AnySizes& sizes) {
  std::vector<int64_t> shape;
  for (const Size& size : value.sizes) shape.push_back(size.at(sizes));
  return shape;
}

std::vector<at::Tensor> replay(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  const c10::AutoGradMode without_gradients(false);
  return Player(graph, inputs).run();
}

double difference(const at::Tensor& got, const at::Tensor& expected) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (got.sizes() != expected.sizes() || got.scalar_type() != expected.scalar_type()) return kNone;
  if (got.numel() == 0 || at::equal(got, expected)) return 0;
  const at::Tensor finite = at::isfinite(expected);
  if (!at::equal(finite, at::isfinite(got))) return kNone;
  const at::Tensor one = got.masked_select(finite).to(at::kDouble),
                   other = expected.masked_select(finite).to(at::kDouble);
  if (one.numel() == 0) return 0;
  return (one - other).abs().max().item<double>() / std::max(1.0, other.abs().max().item<double>());
}

}  // namespace tare::interchange
