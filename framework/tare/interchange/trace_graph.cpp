// Compares the operators that forwards of several sizes call, and makes one graph of them.
#include "tare/interchange/trace_graph.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/interchange/lent_storage.h"
#include "tare/interchange/record.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/trace.h"

namespace tare::interchange {
namespace {

[[noreturn]] void refuse(const std::string& problem) { throw ConfigError("export", problem); }

/// Holds the calls of one forward, and which value of the graph each tensor is.
struct Forward {
  AnySizes sizes{};
  std::vector<at::Tensor> inputs{}, outputs{};
  std::vector<Call> calls{};
  std::unordered_map<const c10::TensorImpl*, size_t> values{};
  std::unordered_map<const c10::StorageImpl*, at::Tensor> newest{};  // tensor of each memory
  /// What contiguous() returned, and of which tensor; for one sample it often returns that itself,
  /// without a call of the dispatcher, so that these calls are not compared.
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copied{};
  std::unordered_set<const c10::TensorImpl*> overwritten{};
  std::vector<at::Tensor> kept{};  // so that no address is used again
};

/// Numbers of samples and lengths: the first four show the coefficients, the others test them.
std::vector<AnySizes> sizes_to_try(const std::vector<GraphInput>& inputs) {
  int64_t longest = 0;
  for (const GraphInput& input : inputs)
    if (input.length >= 0) longest = input.sample_shape.at(static_cast<size_t>(input.length));
  if (longest == 0) return {{2, 1}, {3, 1}, {5, 1}, {1, 1}};
  const int64_t shorter = std::max<int64_t>(1, longest - 1),
                third = std::max<int64_t>(1, longest / 2);
  return {{2, longest}, {3, longest}, {2, shorter}, {3, shorter}, {5, third}, {1, longest}};
}

/// Returns the coefficients of a number that has these values at these sizes; unset: it depends on
/// them otherwise than Size says.
std::optional<Size> solve(std::span<const AnySizes> at, std::span<const int64_t> values) {
  Size size;
  if (const int64_t step = at[0].length - at[2].length; step != 0) {
    size.product = ((values[1] - values[0]) - (values[3] - values[2])) / step;
    size.length = (values[0] - values[2]) / step - size.product * at[0].batch;
  }
  size.batch = values[1] - values[0] - size.product * at[0].length;
  size.constant = values[0] - size.batch * at[0].batch - size.length * at[0].length -
                  size.product * at[0].batch * at[0].length;
  for (size_t i = 0; i < values.size(); ++i)
    if (size.at(at[i]) != values[i]) return std::nullopt;
  return size;
}

std::string layer_of(const std::string& tensor) {
  const size_t dot = tensor.rfind('.');
  return dot == std::string::npos ? std::string() : tensor.substr(0, dot);
}

/// Whether a call draws random numbers: not where it says that nothing is dropped.
bool draws(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded) && op.operator_name().name != "aten::dropout")
    return false;
  const auto& parameters = op.schema().arguments();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name();
    if ((name == "dropout_p" || name == "dropout" || name == "p") && arguments[i].toDouble() == 0)
      return false;
    if (name == "train" && arguments[i].isBool() && !arguments[i].toBool()) return false;
  }
  return true;
}

/// Makes the graph from forwards of the same model.
class Builder {
 public:
  Builder(std::vector<Forward> forwards, const std::vector<NamedTensor>& parameters,
          const std::vector<NamedTensor>& buffers)
      : forwards_(std::move(forwards)) {
    for (const Forward& forward : forwards_) sizes_.push_back(forward.sizes);
    for (const NamedTensor& tensor : parameters) add_weight(tensor, Weight::Kind::parameter);
    for (const NamedTensor& tensor : buffers) add_weight(tensor, Weight::Kind::buffer);
  }

  Graph build(const std::vector<GraphInput>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value value{.name = free_name(inputs[i].name), .type = inputs[i].type};
      value.sizes =
          sizes_of([&](const Forward& f) { return f.inputs[i].sizes().vec(); }, "an input");
      graph_.inputs.push_back(add(std::move(value), [&](Forward& f) { return f.inputs[i]; }));
      graph_.any_length |= inputs[i].length >= 0;
    }
    for (const Forward& forward : forwards_)
      if (forward.calls.size() != forwards_[0].calls.size()) refuse_other_operators();
    for (size_t i = 0; i < forwards_[0].calls.size(); ++i) add_call(i);
    for (size_t i = 0; i < forwards_[0].outputs.size(); ++i)
      graph_.outputs.push_back(
          ref([&](const Forward& f) { return f.outputs[i]; }, "its output").value);
    return std::move(graph_);
  }

 private:
  void add_weight(const NamedTensor& tensor, Weight::Kind kind) {
    Value value{.name = free_name(tensor.name), .type = tensor.tensor.scalar_type()};
    for (const int64_t size : tensor.tensor.sizes()) value.sizes.push_back({.constant = size});
    const size_t place = add(std::move(value), [&](Forward&) { return tensor.tensor; });
    graph_.weights.push_back({.name = tensor.name, .kind = kind, .value = place});
  }
  /// Returns a name that no value has, made of letters, digits and underscores.
  std::string free_name(const std::string& wish) {
    const std::string name = plain_name(wish);
    const size_t count = names_[name]++;
    return count == 0 ? name : free_name(name + "_" + std::to_string(count));
  }
  size_t add(Value value, const auto& tensor_in) {
    const size_t place = graph_.values.size();
    graph_.values.push_back(std::move(value));
    for (Forward& forward : forwards_) {
      const at::Tensor tensor = tensor_in(forward);
      forward.values[tensor.unsafeGetTensorImpl()] = place;
      forward.newest[tensor.storage().unsafeGetStorageImpl()] = tensor;
      forward.overwritten.erase(tensor.unsafeGetTensorImpl());
      forward.kept.push_back(tensor);
    }
    return place;
  }
  [[noreturn]] void refuse_other_operators() const {
    refuse("the forward calls other operators for other numbers of samples or lengths" + behind());
  }
  /// Returns where in the model the last operator was.
  [[nodiscard]] std::string behind() const {
    if (graph_.nodes.empty()) return "";
    const Node& last = graph_.nodes.back();
    return ", behind " + last.str() + (last.layer.empty() ? "" : " of layer " + last.layer);
  }

  Size size_of(const auto& number_in, const std::string& what) const {
    std::vector<int64_t> numbers;
    for (const Forward& forward : forwards_) numbers.push_back(number_in(forward));
    const auto size = solve(sizes_, numbers);
    if (!size)
      refuse(what + " depends on the sizes of the inputs otherwise than linearly" + behind());
    return *size;
  }
  std::vector<Size> sizes_of(const auto& list_in, const std::string& what) const {
    std::vector<Size> sizes;
    const size_t count = list_in(forwards_[0]).size();
    for (const Forward& forward : forwards_)
      if (list_in(forward).size() != count) refuse_other_operators();
    for (size_t i = 0; i < count; ++i)
      sizes.push_back(
          size_of([&](const Forward& f) { return list_in(f)[i]; }, "a size of " + what));
    return sizes;
  }
  Ref ref(const auto& tensor_in, const std::string& what) {
    std::optional<size_t> place;
    for (Forward& forward : forwards_) {
      const at::Tensor tensor = tensor_in(forward);
      const auto* impl = tensor.unsafeGetTensorImpl();
      if (forward.overwritten.contains(impl))
        refuse(what + " reads a tensor that was changed in place through another view of it" +
               behind());
      auto at = forward.values.find(impl);
      for (auto copy = forward.copied.find(impl);
           at == forward.values.end() && copy != forward.copied.end();
           copy = forward.copied.find(copy->second.unsafeGetTensorImpl()))
        at = forward.values.find(copy->second.unsafeGetTensorImpl());
      if (at == forward.values.end()) {  // a factory gives its result on as another handle
        const auto other = forward.newest.find(tensor.storage().unsafeGetStorageImpl());
        if (other != forward.newest.end() && other->second.sizes() == tensor.sizes() &&
            other->second.strides() == tensor.strides())
          at = forward.values.find(other->second.unsafeGetTensorImpl());
      }
      if (at == forward.values.end()) return constant(tensor, what);
      if (place && *place != at->second) refuse_other_operators();
      place = at->second;
    }
    return {*place};
  }
  /// Takes a tensor that the model holds as neither parameter nor buffer.
  Ref constant(const at::Tensor& tensor, const std::string& what) {
    if (!tensor.device().is_cpu())
      refuse(what + " reads a tensor that no operator has made, of shape " +
             c10::str(tensor.sizes()) + behind());
    add_weight({"constant", tensor}, Weight::Kind::constant);
    graph_.weights.back().name = graph_.values.back().name;
    graph_.weights.back().tensor = tensor;
    return {graph_.weights.back().value};
  }

  Argument argument(const c10::TypePtr& type, const auto& value_in, const std::string& op);
  void add_call(size_t index);
  void add_results(Node& node, size_t index);
  void overwrite(size_t index);

  std::vector<Forward> forwards_;
  std::vector<AnySizes> sizes_;
  Graph graph_;
  std::unordered_map<std::string, size_t> names_;
  std::string layer_;
};

/// Returns an argument of a call: `value_in` gives the one of each forward.
Argument Builder::argument(const c10::TypePtr& type, const auto& value_in, const std::string& op) {
  const c10::IValue& first = value_in(forwards_[0]);
  for (const Forward& forward : forwards_)
    if (value_in(forward).isNone() != first.isNone()) refuse_other_operators();
  if (first.isNone()) return std::monostate();
  const auto same = [&](const auto& value_of) {
    const auto value = value_of(first);
    for (const Forward& forward : forwards_)
      if (value_of(value_in(forward)) != value)
        refuse("operator " + op + " takes another value for other numbers of samples or lengths" +
               behind());
    return value;
  };
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return argument(type->expectRef<c10::OptionalType>().getElementType(), value_in, op);
    case c10::TypeKind::TensorType:
      if (!first.toTensor().defined()) return std::monostate();
      return ref([&](const Forward& f) { return value_in(f).toTensor(); }, op);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return size_of([&](const Forward& f) { return value_in(f).toInt(); }, "an argument of " + op);
    case c10::TypeKind::NumberType:
      if (first.isInt())
        return size_of([&](const Forward& f) { return value_in(f).toInt(); },
                       "an argument of " + op);
      if (first.isBool()) return same([](const c10::IValue& v) { return v.toBool(); });
      return same([](const c10::IValue& v) { return v.toDouble(); });
    case c10::TypeKind::FloatType:
      return same([](const c10::IValue& v) { return v.toDouble(); });
    case c10::TypeKind::BoolType:
      return same([](const c10::IValue& v) { return v.toBool(); });
    case c10::TypeKind::StringType:
      return same([](const c10::IValue& v) { return v.toStringRef(); });
    case c10::TypeKind::ScalarTypeType:
      return same([](const c10::IValue& v) { return v.toScalarType(); });
    case c10::TypeKind::LayoutType:
      return same([](const c10::IValue& v) { return v.toLayout(); });
    case c10::TypeKind::MemoryFormatType:
      return same([](const c10::IValue& v) { return v.toMemoryFormat(); });
    case c10::TypeKind::DeviceObjType:
      return c10::Device(c10::kCPU);
    case c10::TypeKind::ListType: {
      const c10::TypePtr item = type->expectRef<c10::ListType>().getElementType();
      if (first.isIntList() || (item->kind() == c10::TypeKind::SymIntType && first.isList()))
        return sizes_of([&](const Forward& f) { return value_in(f).toIntVector(); }, op);
      if (first.isDoubleList())
        return same([](const c10::IValue& v) { return v.toDoubleVector(); });
      if (first.isBoolList()) {
        const auto list = first.toBoolList();
        return std::vector<bool>(list.begin(), list.end());
      }
      if (item->kind() != c10::TypeKind::TensorType &&
          !(item->kind() == c10::TypeKind::OptionalType &&
            item->expectRef<c10::OptionalType>().getElementType()->kind() ==
                c10::TypeKind::TensorType))
        break;
      TensorList list;
      const size_t count = same([](const c10::IValue& v) { return v.toListRef().size(); });
      for (size_t i = 0; i < count; ++i) {
        const c10::IValue& one = first.toListRef()[i];
        if (one.isNone() || !one.toTensor().defined())
          list.emplace_back(std::monostate());
        else
          list.emplace_back(
              ref([&](const Forward& f) { return value_in(f).toListRef()[i].toTensor(); }, op));
      }
      return list;
    }
    default:
      break;
  }
  refuse(op + " takes an argument of type " + type->str() + ", which no file can hold" + behind());
}

void Builder::add_call(size_t index) {
  const Call& call = forwards_[0].calls[index];
  for (const Forward& forward : forwards_)
    if (forward.calls[index].op != call.op) refuse_other_operators();
  if (call.op.name == "aten::cudnn_is_acceptable") return;  // asks about the device alone
  Node node{.op = call.op.name, .overload = call.op.overload_name};
  const auto handle = c10::Dispatcher::singleton().findSchema(call.op);
  if (!handle) refuse("operator " + node.str() + " has no schema" + behind());
  const auto& parameters = handle->schema().arguments();
  for (size_t i = 0; i < parameters.size(); ++i)
    node.arguments.push_back(argument(
        parameters[i].real_type(),
        [&](const Forward& f) -> const c10::IValue& { return f.calls[index].arguments[i]; },
        node.str()));
  each_tensor(node, [&](size_t value) {
    if (const Weight* weight = graph_.weight(value)) layer_ = layer_of(weight->name);
  });
  node.layer = layer_;
  if (draws(*handle, call.arguments))
    refuse("operator " + node.str() + " draws random numbers" + behind());
  add_results(node, index);
  graph_.nodes.push_back(std::move(node));
}

// An operator that changes its first argument in place becomes the one that returns the result.
void Builder::add_results(Node& node, size_t index) {
  const Call& call = forwards_[0].calls[index];
  const bool in_place = node.op.ends_with('_');
  if (in_place) {
    const auto* changed = std::get_if<Ref>(&node.arguments.at(0));
    if (changed && graph_.weight(changed->value))
      refuse("operator " + node.str() + " changes " + graph_.weight(changed->value)->name +
             " of the model" + behind());
    node.op.pop_back();
    if (!c10::Dispatcher::singleton().findSchema({node.op, node.overload}))
      refuse("operator " + node.str() + "_ works in place, and no other does what it does" +
             behind());
    overwrite(index);
  }
  size_t number = 0;
  for (size_t r = 0; r < call.results.size(); ++r) {
    const bool list = call.results[r].isTensorList();
    if (!list && !call.results[r].isTensor())
      refuse("operator " + node.str() + " returns a number, which may depend on values" + behind());
    node.returns_list |= list;
    const size_t count = list ? call.results[r].toTensorVector().size() : 1;
    for (size_t i = 0; i < count; ++i, ++number) {
      const auto tensor_in = [&](const Forward& f) {
        const c10::IValue& result = f.calls[index].results[r];
        return list ? result.toTensorVector().at(i) : result.toTensor();
      };
      Value value{.name = free_name(node.op.substr(node.op.rfind(':') + 1)),
                  .type = tensor_in(forwards_[0]).scalar_type()};
      value.sizes = sizes_of([&](const Forward& f) { return f.calls[index].sizes.at(number); },
                             "a result of " + node.str());
      node.results.push_back(add(std::move(value), tensor_in));
    }
  }
}

/// Notes that the other views of the memory that a call changes have no longer their values.
void Builder::overwrite(size_t index) {
  for (Forward& forward : forwards_) {
    const at::Tensor& changed = forward.calls[index].arguments.at(0).toTensor();
    for (const at::Tensor& other : forward.kept)
      if (other.unsafeGetTensorImpl() != changed.unsafeGetTensorImpl() &&
          other.storage().unsafeGetStorageImpl() == changed.storage().unsafeGetStorageImpl())
        forward.overwritten.insert(other.unsafeGetTensorImpl());
  }
}

std::vector<NamedTensor> parameters_of(const Model& model) {
  std::vector<NamedTensor> tensors;
  for (const Parameter& parameter : model.parameters())
    tensors.push_back({parameter.name, parameter.tensor});
  return tensors;
}

Forward forward_of(Model& model, const std::vector<GraphInput>& inputs, const AnySizes& sizes) {
  Forward forward{.sizes = sizes};
  NamedTensors named;
  for (const GraphInput& input : inputs) {
    std::vector<int64_t> shape = input.sample_shape;
    if (input.length >= 0) shape.at(static_cast<size_t>(input.length)) = sizes.length;
    shape.insert(shape.begin(), sizes.batch);
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    forward.inputs.push_back(
        at::empty_strided(shape, strides, at::TensorOptions(input.type).device(c10::kMeta)));
    named.push_back({input.name, forward.inputs.back()});
  }
  forward.calls = record_calls([&] {
    const plan::MetaScope meta;
    const Outputs outputs = model.forward(Batch(std::move(named), {}));
    for (const at::Tensor& output : outputs) forward.outputs.push_back(output);
  });
  std::erase_if(forward.calls, [&](const Call& call) {
    if (call.op.name != "aten::contiguous") return false;
    const at::Tensor& copy = call.results.at(0).toTensor();
    forward.kept.push_back(copy);
    if (!copy.is_same(call.arguments.at(0).toTensor()))
      forward.copied.emplace(copy.unsafeGetTensorImpl(), call.arguments.at(0).toTensor());
    return true;
  });
  return forward;
}

/// Returns the longest sample that the model takes; 0: a longer one than that of the inputs passes.
int64_t longest_of(Model& model, const std::vector<GraphInput>& inputs) {
  int64_t longest = 0;
  for (const GraphInput& input : inputs)
    if (input.length >= 0) longest = input.sample_shape.at(static_cast<size_t>(input.length));
  if (longest == 0) return 0;
  try {
    (void)forward_of(model, inputs, {.batch = 2, .length = 2 * longest});
    return 0;
  } catch (const c10::Error& error) {  // a table of positions is too short, or the like
    log::debug(error.what_without_backtrace());
  } catch (const Error& error) {
    log::debug(error.what());
  }
  return longest;
}

}  // namespace

Graph trace_graph(Model& model, const std::vector<GraphInput>& inputs) {
  if (!model.has_forward()) refuse("the model has no forward of tensors: give one to Model()");
  const EvaluationScope evaluation(model);
  const c10::AutoGradMode without_gradients(false);
  const std::vector<NamedTensor> parameters = parameters_of(model), buffers = model.buffers();
  // With handles of their own, which keep the values.
  std::vector<NamedTensor> stored;
  for (const auto* tensors : {&parameters, &buffers})
    for (const auto& [name, tensor] : *tensors) stored.push_back({name, tensor.detach()});
  Graph graph;
  {
    LentStorage values;
    values.take_values(model.state());
    std::vector<Forward> forwards;
    try {
      for (const AnySizes& sizes : sizes_to_try(inputs))
        forwards.push_back(forward_of(model, inputs, sizes));
    } catch (const plan::NotPlannable& error) {
      refuse(std::string("the forward cannot be followed without values: ") + error.what());
    }
    graph = Builder(std::move(forwards), parameters, buffers).build(inputs);
    graph.longest = longest_of(model, inputs);
  }
  for (size_t i = 0; i < stored.size(); ++i) graph.weights[i].tensor = stored[i].tensor;
  return graph;
}

}  // namespace tare::interchange
