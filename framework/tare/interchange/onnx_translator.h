// The translator behind onnx_nodes(): a function for each operator of LibTorch. Internal.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tare/data/protobuf.h"
#include "tare/interchange/graph.h"
#include "tare/interchange/onnx_parts.h"

namespace tare::interchange::onnx {

using Names = std::vector<std::string>;

/// Throws ConfigError for an operator that cannot be translated.
[[noreturn]] void refuse(const Node& node, const std::string& problem);

/// Collects the attributes of a node.
class Attributes {
 public:
  Attributes& number(const char* name, int64_t value) {
    return add(ProtobufWriter().bytes(kName, name).integer(kInt, value).integer(kType, 2));
  }
  Attributes& real(const char* name, double value) {
    return add(ProtobufWriter()
                   .bytes(kName, name)
                   .real(kFloat, static_cast<float>(value))
                   .integer(kType, 1));
  }
  Attributes& text(const char* name, const std::string& value) {
    return add(ProtobufWriter().bytes(kName, name).bytes(kString, value).integer(kType, 3));
  }
  Attributes& numbers(const char* name, const std::vector<int64_t>& values) {
    ProtobufWriter message;
    message.bytes(kName, name);
    for (const int64_t value : values) message.integer(kInts, value);
    return add(message.integer(kType, 7));
  }
  void write(ProtobufWriter& node) const {
    for (const ProtobufWriter& attribute : all_) node.message(5, attribute);
  }

 private:
  static constexpr uint32_t kName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kType = 20;
  Attributes& add(const ProtobufWriter& attribute) {
    all_.push_back(attribute);
    return *this;
  }
  std::vector<ProtobufWriter> all_;
};

class Translator {
 public:
  Translator(const Graph& graph, int64_t opset) : graph_(graph), opset_(opset) {
    for (const Value& value : graph.values) made_.names.push_back(value.name);
    for (const Weight& weight : graph.weights) made_.names[weight.value] = weight.name;
    taken_.insert(made_.names.begin(), made_.names.end());
  }

  OnnxNodes run() {
    for (const Node& node : graph_.nodes) {
      const auto& all = translations();
      const auto found = all.find(node.str());
      if (found == all.end()) refuse(node, "has no translation to ONNX");
      node_ = &node;
      (this->*found->second)();
    }
    return std::move(made_);
  }

 private:
  using Translation = void (Translator::*)();
  static const std::map<std::string, Translation>& translations();

  // ---- arguments of the node

  [[nodiscard]] const Argument& argument(size_t i) const { return node_->arguments.at(i); }
  [[nodiscard]] bool none(size_t i) const {
    return std::holds_alternative<std::monostate>(argument(i));
  }
  [[nodiscard]] size_t value(size_t i) const {
    const auto* ref = std::get_if<Ref>(&argument(i));
    if (!ref) refuse(*node_, "has a number where its translation takes a tensor");
    return ref->value;
  }
  [[nodiscard]] std::string name(size_t i) const { return made_.names[value(i)]; }
  /// Returns the name of a tensor, or "": there is none.
  [[nodiscard]] std::string name_or_none(size_t i) const { return none(i) ? "" : name(i); }
  [[nodiscard]] int64_t number(size_t i) const { return fixed(std::get<Size>(argument(i))); }
  [[nodiscard]] bool flag(size_t i) const { return std::get<bool>(argument(i)); }
  [[nodiscard]] double real(size_t i) const {
    if (const auto* size = std::get_if<Size>(&argument(i)))
      return static_cast<double>(fixed(*size));
    return std::get<double>(argument(i));
  }
  [[nodiscard]] std::vector<int64_t> numbers(size_t i) const {
    std::vector<int64_t> all;
    for (const Size& size : std::get<std::vector<Size>>(argument(i))) all.push_back(fixed(size));
    return all;
  }
  [[nodiscard]] int64_t fixed(const Size& size) const {
    if (!size.fixed()) refuse(*node_, "has a number that depends on the sizes of the inputs");
    return size.constant;
  }
  [[nodiscard]] Names list(size_t i) const {
    Names all;
    for (const auto& item : std::get<TensorList>(argument(i))) {
      const auto* ref = std::get_if<Ref>(&item);
      if (!ref) refuse(*node_, "has a list with a gap");
      all.push_back(made_.names[ref->value]);
    }
    return all;
  }
  [[nodiscard]] const std::vector<Size>& sizes(size_t value) const {
    return graph_.values[value].sizes;
  }
  [[nodiscard]] int64_t rank(size_t i) const {
    return static_cast<int64_t>(sizes(value(i)).size());
  }
  [[nodiscard]] c10::ScalarType type(size_t i) const { return graph_.values[value(i)].type; }
  [[nodiscard]] std::string result(size_t i = 0) const { return made_.names[node_->results.at(i)]; }
  [[nodiscard]] size_t result_value() const { return node_->results.at(0); }
  /// Returns a dimension counted from the front.
  [[nodiscard]] int64_t dimension(size_t i, int64_t of_rank) const {
    const int64_t dim = number(i);
    return dim < 0 ? dim + of_rank : dim;
  }

  // ---- nodes

  std::string fresh(const std::string& wish) { return take_name(taken_, wish); }
  void add(const char* op, const Names& inputs, const Names& outputs,
           const Attributes& attributes = {}) {
    ProtobufWriter node;
    for (const std::string& input : inputs) node.bytes(1, input);
    for (const std::string& output : outputs) node.bytes(2, output);
    node.bytes(3, "node_" + std::to_string(made_.nodes.size())).bytes(4, op);
    attributes.write(node);
    made_.nodes.push_back(node.text());
  }
  /// Adds a node whose result is not one of the graph's, and returns its name.
  std::string add_inner(const char* op, const Names& inputs, const Attributes& attributes = {}) {
    const std::string output = fresh(result() + "_" + op);
    add(op, inputs, {output}, attributes);
    return output;
  }
  std::string constant(const std::vector<int64_t>& shape, c10::ScalarType type,
                       const std::string& raw) {
    const std::string name = fresh("constant");
    ProtobufWriter tensor;
    for (const int64_t size : shape) tensor.integer(1, size);
    made_.constants.push_back(
        tensor.integer(2, onnx_type(type)).bytes(8, name).bytes(9, raw).text());
    return name;
  }
  std::string integers(const std::vector<int64_t>& values) {
    std::string raw(values.size() * sizeof(int64_t), '\0');
    std::memcpy(raw.data(), values.data(), raw.size());
    return constant({static_cast<int64_t>(values.size())}, c10::ScalarType::Long, raw);
  }
  /// Returns a number of this dtype as a constant without dimensions.
  std::string scalar(double value, c10::ScalarType type) {
    std::string raw;
    const auto put = [&](auto number) {
      raw.resize(sizeof number);
      std::memcpy(raw.data(), &number, sizeof number);
    };
    switch (type) {
      case c10::ScalarType::Float:
        put(static_cast<float>(value));
        break;
      case c10::ScalarType::Double:
        put(value);
        break;
      case c10::ScalarType::Long:
        put(static_cast<int64_t>(value));
        break;
      case c10::ScalarType::Int:
        put(static_cast<int32_t>(value));
        break;
      default:
        refuse(*node_, std::string("computes with a number in ") + c10::toString(type));
    }
    return constant({}, type, raw);
  }

  /// Returns a number of the sizes of the inputs as a tensor of one element.
  std::string size_tensor(const Size& size) {
    if (size.fixed()) return integers({size.constant});
    if (size == Size{.batch = 1} || size == Size{.length = 1}) {
      for (const size_t input : graph_.inputs) {
        const auto& all = sizes(input);
        const auto at = std::ranges::find(all, size);
        if (at == all.end()) continue;
        const std::string shape = add_inner("Shape", {made_.names[input]});
        return add_inner("Gather", {shape, integers({at - all.begin()})},
                         Attributes().number("axis", 0));
      }
      refuse(*node_, "depends on a size that no input has");
    }
    std::optional<std::string> sum;
    const auto term = [&](int64_t factor, const Names& of) {
      if (factor == 0) return;
      std::string product = integers({factor});
      for (const std::string& each : of) product = add_inner("Mul", {product, each});
      sum = sum ? add_inner("Add", {*sum, product}) : product;
    };
    term(size.constant, {});
    if (size.batch != 0) term(size.batch, {size_tensor({.batch = 1})});
    if (size.length != 0) term(size.length, {size_tensor({.length = 1})});
    if (size.product != 0)
      term(size.product, {size_tensor({.batch = 1}), size_tensor({.length = 1})});
    return *sum;
  }
  std::string sizes_tensor(const std::vector<Size>& all) {
    if (std::ranges::all_of(all, &Size::fixed)) {
      std::vector<int64_t> numbers;
      for (const Size& size : all) numbers.push_back(size.constant);
      return integers(numbers);
    }
    Names parts;
    for (const Size& size : all) parts.push_back(size_tensor(size));
    return add_inner("Concat", parts, Attributes().number("axis", 0));
  }
  /// Reshapes to the sizes of the node's result. In a Reshape 0 is the input's size at the same
  /// place, and one -1 is what is left over.
  void reshape_to_result(const std::string& input, const std::vector<Size>& from) {
    const std::vector<Size>& to = sizes(result_value());
    std::vector<int64_t> shape;
    bool left_over = false, known = true;
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].fixed()) {
        shape.push_back(to[i].constant);
      } else if (i < from.size() && from[i] == to[i]) {
        shape.push_back(0);
      } else {
        known = known && !left_over;
        left_over = true;
        shape.push_back(-1);
      }
    }
    add("Reshape", {input, known ? integers(shape) : sizes_tensor(to)}, {result()});
  }

  // ---- operators

  template <const char* const& Op>
  void same() {
    add(Op, {name(0)}, {result()});
  }
  template <const char* const& Op>
  void arithmetic();
  void add_or_sub();
  void linear();
  void addmm();
  void matmul();
  void convolve(const char* op, Attributes attributes, size_t dilations);
  void conv();
  void conv_transpose();
  void batch_norm();
  void gelu();
  void silu();
  void hardsigmoid();
  void leaky_relu();
  void elu();
  void softmax();
  void log_softmax();
  void max_pool();
  void avg_pool();
  void adaptive_avg_pool();
  void flatten() { reshape_to_result(name(0), sizes(value(0))); }
  void cat();
  void split();
  void transpose();
  void t();
  void permute();
  void expand();
  void select();
  void narrow();
  void slice();
  void embedding();
  void layer_norm();
  void attention();
  void whole_attention();
  void gather();
  void lstm();
  void zeros();
  void mean();
  void sum();
  void stack();
  void pad();
  void upsample_bilinear();
  void unbind();
  void largest();
  void power();
  void clamp();
  void to_type();

  const Graph& graph_;
  int64_t opset_;
  const Node* node_ = nullptr;
  OnnxNodes made_;
  std::set<std::string> taken_;
};

}  // namespace tare::interchange::onnx
