// Translates operators of LibTorch to operators of ONNX: elements, shapes and sums, and the table
// of all translations.
#include "tare/interchange/onnx_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tare/base/error.h"
#include "tare/interchange/onnx_translator.h"

namespace tare::interchange {
namespace onnx {

void refuse(const Node& node, const std::string& problem) {
  throw ConfigError("export.onnx",
                    "operator " + node.str() +
                        (node.layer.empty() ? "" : ", of or behind layer " + node.layer + ',') +
                        ' ' + problem);
}

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

}  // namespace onnx

OnnxNodes onnx_nodes(const Graph& graph, int64_t opset) {
  return onnx::Translator(graph, opset).run();
}

}  // namespace tare::interchange
