// Translates operators of LibTorch to operators of ONNX, one function for each.
#include "tare/interchange/onnx_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "tare/base/error.h"
#include "tare/data/protobuf.h"

namespace tare::interchange {
namespace {

using Names = std::vector<std::string>;

[[noreturn]] void refuse(const Node& node, const std::string& problem) {
  throw ConfigError("export.onnx",
                    "operator " + node.str() +
                        (node.layer.empty() ? "" : ", of or behind layer " + node.layer + ',') +
                        ' ' + problem);
}

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
  explicit Translator(const Graph& graph) : graph_(graph) {
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
  const Node* node_ = nullptr;
  OnnxNodes made_;
  std::set<std::string> taken_;
};

constexpr const char* kRelu = "Relu";
constexpr const char* kSigmoid = "Sigmoid";
constexpr const char* kTanh = "Tanh";
constexpr const char* kHardSwish = "HardSwish";
constexpr const char* kExp = "Exp";
constexpr const char* kLog = "Log";
constexpr const char* kSqrt = "Sqrt";
constexpr const char* kAbs = "Abs";
constexpr const char* kNeg = "Neg";
constexpr const char* kMul = "Mul";
constexpr const char* kDiv = "Div";

template <const char* const& Op>
void Translator::arithmetic() {
  const bool tensor = std::holds_alternative<Ref>(argument(1));
  add(Op, {name(0), tensor ? name(1) : scalar(real(1), type(0))}, {result()});
}

void Translator::add_or_sub() {
  const bool tensor = std::holds_alternative<Ref>(argument(1));
  std::string other = tensor ? name(1) : scalar(real(1), type(0));
  if (real(2) != 1) other = add_inner("Mul", {other, scalar(real(2), type(0))});
  add(node_->op == "aten::sub" ? "Sub" : "Add", {name(0), other}, {result()});
}

void Translator::linear() {
  if (rank(0) == 2) {
    Names inputs{name(0), name(1)};
    if (!none(2)) inputs.push_back(name(2));
    return add("Gemm", inputs, {result()}, Attributes().number("transB", 1));
  }
  const std::string weight =
      add_inner("Transpose", {name(1)}, Attributes().numbers("perm", {1, 0}));
  if (none(2)) return add("MatMul", {name(0), weight}, {result()});
  add("Add", {add_inner("MatMul", {name(0), weight}), name(2)}, {result()});
}

void Translator::addmm() {
  add("Gemm", {name(1), name(2), name(0)}, {result()},
      Attributes().real("beta", real(3)).real("alpha", real(4)));
}

void Translator::matmul() { add("MatMul", {name(0), name(1)}, {result()}); }

/// Returns the padding at the beginning of each dimension, then that at the end.
std::vector<int64_t> both_sides(const std::vector<int64_t>& padding) {
  std::vector<int64_t> all = padding;
  all.insert(all.end(), padding.begin(), padding.end());
  return all;
}

/// Returns as many numbers as there are dimensions, of one for all or one for each.
std::vector<int64_t> for_each(std::vector<int64_t> numbers, size_t dimensions) {
  if (numbers.size() == 1) numbers.resize(dimensions, numbers.front());
  return numbers;
}

void Translator::conv() {
  const size_t dims = static_cast<size_t>(rank(0)) - 2;
  Names inputs{name(0), name(1)};
  if (!none(2)) inputs.push_back(name(2));
  add("Conv", inputs, {result()},
      Attributes()
          .numbers("strides", for_each(numbers(3), dims))
          .numbers("pads", both_sides(for_each(numbers(4), dims)))
          .numbers("dilations", for_each(numbers(5), dims))
          .number("group", number(6)));
}

void Translator::conv_transpose() {
  const size_t dims = static_cast<size_t>(rank(0)) - 2;
  Names inputs{name(0), name(1)};
  if (!none(2)) inputs.push_back(name(2));
  add("ConvTranspose", inputs, {result()},
      Attributes()
          .numbers("strides", for_each(numbers(3), dims))
          .numbers("pads", both_sides(for_each(numbers(4), dims)))
          .numbers("output_padding", for_each(numbers(5), dims))
          .number("group", number(6))
          .numbers("dilations", for_each(numbers(7), dims)));
}

void Translator::batch_norm() {
  if (flag(5) || none(3) || none(4)) refuse(*node_, "normalises by the batch, as in training");
  std::string scale = name_or_none(1), shift = name_or_none(2);
  const int64_t channels = fixed(sizes(value(3)).at(0));
  const auto filled = [&](float with) {
    std::string raw;
    for (int64_t i = 0; i < channels; ++i)
      raw.append(reinterpret_cast<const char*>(&with), sizeof with);
    return constant({channels}, c10::ScalarType::Float, raw);
  };
  if (scale.empty()) scale = filled(1);
  if (shift.empty()) shift = filled(0);
  add("BatchNormalization", {name(0), scale, shift, name(3), name(4)}, {result()},
      Attributes().real("epsilon", real(7)));
}

void Translator::gelu() {
  const auto number = [&](double value) { return scalar(value, type(0)); };
  const std::string x = name(0);
  std::string inner;
  if (std::get<std::string>(argument(1)) == "tanh") {
    const std::string cube = add_inner("Mul", {add_inner("Mul", {x, x}), x});
    const std::string sum = add_inner("Add", {x, add_inner("Mul", {cube, number(0.044715)})});
    inner = add_inner("Tanh", {add_inner("Mul", {sum, number(std::sqrt(2 / M_PI))})});
  } else {
    inner = add_inner("Erf", {add_inner("Mul", {x, number(std::sqrt(0.5))})});
  }
  const std::string half = add_inner("Mul", {x, number(0.5)});
  add("Mul", {half, add_inner("Add", {inner, number(1)})}, {result()});
}

void Translator::silu() { add("Mul", {name(0), add_inner("Sigmoid", {name(0)})}, {result()}); }

void Translator::hardsigmoid() {
  add("HardSigmoid", {name(0)}, {result()}, Attributes().real("alpha", 1.0 / 6).real("beta", 0.5));
}

void Translator::leaky_relu() {
  add("LeakyRelu", {name(0)}, {result()}, Attributes().real("alpha", real(1)));
}

void Translator::elu() {
  if (real(2) != 1 || real(3) != 1) refuse(*node_, "has a scale, for which ONNX has no operator");
  add("Elu", {name(0)}, {result()}, Attributes().real("alpha", real(1)));
}

void Translator::softmax() {
  add("Softmax", {name(0)}, {result()}, Attributes().number("axis", number(1)));
}

void Translator::log_softmax() {
  add("LogSoftmax", {name(0)}, {result()}, Attributes().number("axis", number(1)));
}

void Translator::max_pool() {
  const size_t dims = static_cast<size_t>(rank(0)) - 2;
  const auto kernel = for_each(numbers(1), dims);
  const auto strides = numbers(2).empty() ? kernel : for_each(numbers(2), dims);
  add("MaxPool", {name(0)}, {result()},
      Attributes()
          .numbers("kernel_shape", kernel)
          .numbers("strides", strides)
          .numbers("pads", both_sides(for_each(numbers(3), dims)))
          .numbers("dilations", for_each(numbers(4), dims))
          .number("ceil_mode", flag(5) ? 1 : 0));
}

void Translator::avg_pool() {
  if (!none(6)) refuse(*node_, "divides by a number of its own, for which ONNX has no operator");
  const size_t dims = static_cast<size_t>(rank(0)) - 2;
  const auto kernel = for_each(numbers(1), dims);
  const auto strides = numbers(2).empty() ? kernel : for_each(numbers(2), dims);
  add("AveragePool", {name(0)}, {result()},
      Attributes()
          .numbers("kernel_shape", kernel)
          .numbers("strides", strides)
          .numbers("pads", both_sides(for_each(numbers(3), dims)))
          .number("ceil_mode", flag(4) ? 1 : 0)
          .number("count_include_pad", flag(5) ? 1 : 0));
}

// To one pixel it is a mean; to more, equal windows where the sizes divide.
void Translator::adaptive_avg_pool() {
  const auto& from = sizes(value(0));
  const size_t dims = from.size() - 2;
  const auto to = for_each(numbers(1), dims);
  if (std::ranges::all_of(to, [](int64_t size) { return size == 1; }))
    return add("GlobalAveragePool", {name(0)}, {result()});
  std::vector<int64_t> window;
  for (size_t i = 0; i < dims; ++i) {
    const int64_t size = fixed(from[2 + i]);
    if (size % to[i] != 0)
      refuse(*node_, "averages windows of different sizes, for which ONNX has no operator");
    window.push_back(size / to[i]);
  }
  add("AveragePool", {name(0)}, {result()},
      Attributes().numbers("kernel_shape", window).numbers("strides", window));
}

void Translator::cat() {
  const auto axis = number(1);
  add("Concat", list(0), {result()}, Attributes().number("axis", axis));
}

void Translator::split() {
  const int64_t axis = dimension(2, rank(0));
  std::vector<Size> parts;
  Names outputs;
  for (size_t i = 0; i < node_->results.size(); ++i) {
    parts.push_back(sizes(node_->results[i])[static_cast<size_t>(axis)]);
    outputs.push_back(result(i));
  }
  add("Split", {name(0), sizes_tensor(parts)}, outputs, Attributes().number("axis", axis));
}

void Translator::transpose() {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank(0); ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(dimension(1, rank(0)))],
            order[static_cast<size_t>(dimension(2, rank(0)))]);
  add("Transpose", {name(0)}, {result()}, Attributes().numbers("perm", order));
}

void Translator::t() {
  add("Transpose", {name(0)}, {result()}, Attributes().numbers("perm", {1, 0}));
}

void Translator::permute() {
  std::vector<int64_t> order = numbers(1);
  for (int64_t& dim : order)
    if (dim < 0) dim += rank(0);
  add("Transpose", {name(0)}, {result()}, Attributes().numbers("perm", order));
}

void Translator::expand() {
  add("Expand", {name(0), sizes_tensor(sizes(result_value()))}, {result()});
}

void Translator::select() {
  const std::string index = scalar(static_cast<double>(number(2)), c10::ScalarType::Long);
  add("Gather", {name(0), index}, {result()}, Attributes().number("axis", dimension(1, rank(0))));
}

void Translator::narrow() {
  const auto& start = std::get<Size>(argument(2));
  const auto& length = std::get<Size>(argument(3));
  const Size end{.constant = start.constant + length.constant,
                 .batch = start.batch + length.batch,
                 .length = start.length + length.length,
                 .product = start.product + length.product};
  add("Slice", {name(0), size_tensor(start), size_tensor(end), integers({dimension(1, rank(0))})},
      {result()});
}

void Translator::slice() {
  const std::string start = none(2) ? integers({0}) : size_tensor(std::get<Size>(argument(2)));
  const std::string end = none(3) ? integers({std::numeric_limits<int64_t>::max()})
                                  : size_tensor(std::get<Size>(argument(3)));
  add("Slice", {name(0), start, end, integers({dimension(1, rank(0))}), integers({number(4)})},
      {result()});
}

void Translator::embedding() {
  add("Gather", {name(0), name(1)}, {result()}, Attributes().number("axis", 0));
}

void Translator::layer_norm() {
  if (none(2)) refuse(*node_, "has no weight, which LayerNormalization of ONNX needs");
  Names inputs{name(0), name(2)};
  if (!none(3)) inputs.push_back(name(3));
  add("LayerNormalization", inputs, {result()},
      Attributes()
          .number("axis", -static_cast<int64_t>(numbers(1).size()))
          .real("epsilon", real(4)));
}

// softmax(Q K' scale + mask) V; before opset 23 ONNX has no operator for it.
void Translator::attention() {
  if (flag(7)) refuse(*node_, "has groups of heads, which are not translated");
  const int64_t dims = rank(0);
  const Size& width = sizes(value(0)).back();
  const double scale = none(6) ? 1 / std::sqrt(static_cast<double>(fixed(width))) : real(6);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < dims; ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const std::string keys = add_inner("Transpose", {name(1)}, Attributes().numbers("perm", order));
  const std::string query = add_inner("Mul", {name(0), scalar(scale, type(0))});
  std::string scores = add_inner("MatMul", {query, keys});
  if (flag(5)) {  // causal: what lies above the diagonal is out of reach
    const auto row = sizes(value(0))[static_cast<size_t>(dims - 2)],
               column = sizes(value(1))[static_cast<size_t>(dims - 2)];
    const std::string number = scalar(std::numeric_limits<float>::lowest(), c10::ScalarType::Float);
    const std::string all = add_inner("Expand", {number, sizes_tensor({row, column})});
    const std::string above = add_inner("Trilu", {all, scalar(1, c10::ScalarType::Long)},
                                        Attributes().number("upper", 1));
    scores = add_inner("Add", {scores, above});
  }
  if (!none(3)) {
    if (type(3) == c10::ScalarType::Bool) refuse(*node_, "has a mask of booleans");
    scores = add_inner("Add", {scores, name(3)});
  }
  const std::string weights = add_inner("Softmax", {scores}, Attributes().number("axis", -1));
  add("MatMul", {weights, name(2)}, {result()});
}

void Translator::gather() {
  add("GatherElements", {name(0), name(2)}, {result()},
      Attributes().number("axis", dimension(1, rank(0))));
}

void Translator::zeros() {
  if (graph_.values[result_value()].type != c10::ScalarType::Float)
    refuse(*node_, "makes numbers that are not float32, which are not translated");
  add("ConstantOfShape", {sizes_tensor(sizes(result_value()))}, {result()});
}

void Translator::mean() {
  if (none(1)) return add("ReduceMean", {name(0)}, {result()}, Attributes().number("keepdims", 0));
  add("ReduceMean", {name(0), integers(numbers(1))}, {result()},
      Attributes().number("keepdims", flag(2) ? 1 : 0));
}

// ONNX has no sum of booleans, and LibTorch's is a whole number.
void Translator::sum() {
  const std::string x = add_inner(
      "Cast", {name(0)}, Attributes().number("to", onnx_type(graph_.values[result_value()].type)));
  Names inputs{x};
  if (!none(1) && !numbers(1).empty()) inputs.push_back(integers(numbers(1)));
  add("ReduceSum", inputs, {result()}, Attributes().number("keepdims", flag(2) ? 1 : 0));
}

void Translator::stack() {
  const int64_t axis = number(1);
  Names parts;
  for (const std::string& part : list(0))
    parts.push_back(add_inner("Unsqueeze", {part, integers({axis})}));
  add("Concat", parts, {result()}, Attributes().number("axis", axis));
}

// LibTorch has the last dimension first, with both of its sides.
void Translator::pad() {
  const std::vector<int64_t> given = numbers(1);
  const auto dims = static_cast<size_t>(rank(0));
  std::vector<int64_t> pads(2 * dims, 0);
  for (size_t i = 0; 2 * i + 1 < given.size(); ++i) {
    pads[dims - 1 - i] = given[2 * i];
    pads[2 * dims - 1 - i] = given[2 * i + 1];
  }
  add("Pad", {name(0), integers(pads), scalar(none(2) ? 0 : real(2), type(0))}, {result()});
}

void Translator::upsample_bilinear() {
  add("Resize", {name(0), "", "", sizes_tensor(sizes(result_value()))}, {result()},
      Attributes()
          .text("mode", "linear")
          .text("coordinate_transformation_mode",
                flag(2) ? "align_corners" : "pytorch_half_pixel"));
}

void Translator::unbind() {
  const int64_t axis = dimension(1, rank(0));
  for (size_t i = 0; i < node_->results.size(); ++i) {
    const std::string index = scalar(static_cast<double>(i), c10::ScalarType::Long);
    add("Gather", {name(0), index}, {result(i)}, Attributes().number("axis", axis));
  }
}

void Translator::largest() {
  Names inputs{name(0)};
  if (const auto dims = numbers(1); !dims.empty()) inputs.push_back(integers(dims));
  add("ReduceMax", inputs, {result()}, Attributes().number("keepdims", flag(2) ? 1 : 0));
}

void Translator::power() { add("Pow", {name(0), scalar(real(1), type(0))}, {result()}); }

void Translator::clamp() {
  add("Clip",
      {name(0), none(1) ? "" : scalar(real(1), type(0)), none(2) ? "" : scalar(real(2), type(0))},
      {result()});
}

void Translator::to_type() {
  add("Cast", {name(0)}, {result()},
      Attributes().number("to", onnx_type(graph_.values[result_value()].type)));
}

// One ONNX LSTM for each layer; ONNX has the gates in the order i o f c, LibTorch i f c o.
void Translator::lstm() {
  const bool has_bias = flag(3), bidirectional = flag(7), batch_first = flag(8);
  const int64_t layers = number(4);
  const Names weights = list(2);
  const size_t per_direction = has_bias ? 4 : 2, directions = bidirectional ? 2 : 1;
  if (weights.size() != static_cast<size_t>(layers) * directions * per_direction)
    refuse(*node_, "has projections, which are not translated");
  std::string x = name(0);
  if (batch_first) x = add_inner("Transpose", {x}, Attributes().numbers("perm", {1, 0, 2}));
  const auto reordered = [&](const std::string& tensor) {  // i f c o -> i o f c, [1, 4 h, ...]
    const std::string parts = fresh(result() + "_gates");
    const Names four{parts + "_i", parts + "_f", parts + "_c", parts + "_o"};
    add("Split", {tensor}, four, Attributes().number("axis", 0).number("num_outputs", 4));
    return add_inner("Concat", {four[0], four[3], four[1], four[2]},
                     Attributes().number("axis", 0));
  };
  const auto stacked = [&](const Names& of_directions) {
    Names all;
    for (const std::string& one : of_directions)
      all.push_back(add_inner("Unsqueeze", {one, integers({0})}));
    return all.size() == 1 ? all[0] : add_inner("Concat", all, Attributes().number("axis", 0));
  };
  Names last_h, last_c;
  for (int64_t layer = 0; layer < layers; ++layer) {
    Names w, r, b;
    int64_t size = 0;
    for (size_t d = 0; d < directions; ++d) {
      const size_t at = (static_cast<size_t>(layer) * directions + d) * per_direction;
      w.push_back(reordered(weights[at]));
      r.push_back(reordered(weights[at + 1]));
      if (has_bias)
        b.push_back(add_inner("Concat", {reordered(weights[at + 2]), reordered(weights[at + 3])},
                              Attributes().number("axis", 0)));
      const auto& list_of = std::get<TensorList>(argument(2));
      size = fixed(sizes(std::get<Ref>(list_of[at + 1]).value).back());
    }
    const auto state = [&](size_t which) {  // rows of this layer, [directions, samples, hidden]
      const auto& states = std::get<TensorList>(argument(1));
      const std::string& all = made_.names[std::get<Ref>(states.at(which)).value];
      const int64_t from = layer * static_cast<int64_t>(directions);
      return add_inner("Slice",
                       {all, integers({from}), integers({from + static_cast<int64_t>(directions)}),
                        integers({0})});
    };
    const std::string y = fresh(result() + "_steps"), h = fresh(result() + "_h"),
                      c = fresh(result() + "_c");
    add("LSTM", {x, stacked(w), stacked(r), has_bias ? stacked(b) : "", "", state(0), state(1)},
        {y, h, c},
        Attributes()
            .number("hidden_size", size)
            .text("direction", bidirectional ? "bidirectional" : "forward"));
    // [steps, directions, samples, hidden] -> [steps, samples, directions * hidden]
    const std::string moved =
        add_inner("Transpose", {y}, Attributes().numbers("perm", {0, 2, 1, 3}));
    x = add_inner("Reshape", {moved, integers({0, 0, static_cast<int64_t>(directions) * size})});
    last_h.push_back(h);
    last_c.push_back(c);
  }
  if (batch_first)
    add("Transpose", {x}, {result(0)}, Attributes().numbers("perm", {1, 0, 2}));
  else
    add("Identity", {x}, {result(0)});
  add("Concat", last_h, {result(1)}, Attributes().number("axis", 0));
  add("Concat", last_c, {result(2)}, Attributes().number("axis", 0));
}

const std::map<std::string, Translator::Translation>& Translator::translations() {
  using T = Translator;
  static const std::map<std::string, Translation> kAll{
      {"relu", &T::same<kRelu>},
      {"sigmoid", &T::same<kSigmoid>},
      {"tanh", &T::same<kTanh>},
      {"hardswish", &T::same<kHardSwish>},
      {"exp", &T::same<kExp>},
      {"log", &T::same<kLog>},
      {"sqrt", &T::same<kSqrt>},
      {"abs", &T::same<kAbs>},
      {"neg", &T::same<kNeg>},
      {"mul.Tensor", &T::arithmetic<kMul>},
      {"mul.Scalar", &T::arithmetic<kMul>},
      {"div.Tensor", &T::arithmetic<kDiv>},
      {"div.Scalar", &T::arithmetic<kDiv>},
      {"add.Tensor", &T::add_or_sub},
      {"add.Scalar", &T::add_or_sub},
      {"sub.Tensor", &T::add_or_sub},
      {"sub.Scalar", &T::add_or_sub},
      {"linear", &T::linear},
      {"addmm", &T::addmm},
      {"mm", &T::matmul},
      {"bmm", &T::matmul},
      {"matmul", &T::matmul},
      {"conv1d", &T::conv},
      {"conv2d", &T::conv},
      {"conv3d", &T::conv},
      {"conv_transpose2d.input", &T::conv_transpose},
      {"batch_norm", &T::batch_norm},
      {"gelu", &T::gelu},
      {"silu", &T::silu},
      {"hardsigmoid", &T::hardsigmoid},
      {"leaky_relu", &T::leaky_relu},
      {"elu", &T::elu},
      {"softmax.int", &T::softmax},
      {"log_softmax.int", &T::log_softmax},
      {"max_pool2d", &T::max_pool},
      {"avg_pool2d", &T::avg_pool},
      {"adaptive_avg_pool2d", &T::adaptive_avg_pool},
      {"flatten.using_ints", &T::flatten},
      {"reshape", &T::flatten},
      {"squeeze.dim", &T::flatten},
      {"unsqueeze", &T::flatten},
      {"cat", &T::cat},
      {"split.Tensor", &T::split},
      {"chunk", &T::split},
      {"transpose.int", &T::transpose},
      {"t", &T::t},
      {"permute", &T::permute},
      {"expand", &T::expand},
      {"select.int", &T::select},
      {"narrow", &T::narrow},
      {"slice.Tensor", &T::slice},
      {"embedding", &T::embedding},
      {"layer_norm", &T::layer_norm},
      {"scaled_dot_product_attention", &T::attention},
      {"gather", &T::gather},
      {"lstm.input", &T::lstm},
      {"zeros", &T::zeros},
      {"mean.dim", &T::mean},
      {"amax", &T::largest},
      {"sum.dim_IntList", &T::sum},
      {"stack", &T::stack},
      {"unbind.int", &T::unbind},
      {"constant_pad_nd", &T::pad},
      {"upsample_bilinear2d", &T::upsample_bilinear},
      {"upsample_bilinear2d.vec", &T::upsample_bilinear},
      {"pow.Tensor_Scalar", &T::power},
      {"clamp", &T::clamp},
      {"to.dtype", &T::to_type},
  };
  return kAll;
}

}  // namespace

int64_t onnx_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return 1;
    case c10::ScalarType::Byte:
      return 2;
    case c10::ScalarType::Char:
      return 3;
    case c10::ScalarType::Short:
      return 5;
    case c10::ScalarType::Int:
      return 6;
    case c10::ScalarType::Long:
      return 7;
    case c10::ScalarType::Bool:
      return 9;
    case c10::ScalarType::Half:
      return 10;
    case c10::ScalarType::Double:
      return 11;
    case c10::ScalarType::BFloat16:
      return 16;
    default:
      throw ConfigError("export.onnx", std::string("a tensor has the dtype ") +
                                           c10::toString(type) + ", which ONNX lacks");
  }
}

OnnxNodes onnx_nodes(const Graph& graph) { return Translator(graph).run(); }

}  // namespace tare::interchange
