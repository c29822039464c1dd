// Translates the operators of layers: products, convolutions, pooling, norms, attention, LSTMs.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tare/interchange/onnx_translator.h"

namespace tare::interchange::onnx {
namespace {

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

}  // namespace

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

/// Adds a convolution with `attributes` beside those that both kinds have.
void Translator::convolve(const char* op, Attributes attributes, size_t dilations) {
  const size_t dims = static_cast<size_t>(rank(0)) - 2;
  Names inputs{name(0), name(1)};
  if (!none(2)) inputs.push_back(name(2));
  add(op, inputs, {result()},
      attributes.numbers("strides", for_each(numbers(3), dims))
          .numbers("pads", both_sides(for_each(numbers(4), dims)))
          .numbers("dilations", for_each(numbers(dilations), dims))
          .number("group", number(6)));
}

void Translator::conv() { convolve("Conv", {}, 5); }

void Translator::conv_transpose() {
  const size_t dims = static_cast<size_t>(rank(0)) - 2;
  convolve("ConvTranspose", Attributes().numbers("output_padding", for_each(numbers(5), dims)), 7);
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

// softmax(Q K' scale + mask) V, as operators where the opset has none for it.
void Translator::attention() {
  constexpr int64_t kDims = 4;  // [batch, heads, length, width]
  if (opset_ >= kOnnxAttentionOpset && rank(0) == kDims) return whole_attention();
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

void Translator::whole_attention() {
  Names inputs{name(0), name(1), name(2)};
  if (!none(3)) inputs.push_back(name(3));
  Attributes attributes;
  attributes.number("is_causal", flag(5) ? 1 : 0);
  if (!none(6)) attributes.real("scale", real(6));
  add("Attention", inputs, {result()}, attributes);
}

void Translator::upsample_bilinear() {
  add("Resize", {name(0), "", "", sizes_tensor(sizes(result_value()))}, {result()},
      Attributes()
          .text("mode", "linear")
          .text("coordinate_transformation_mode",
                flag(2) ? "align_corners" : "pytorch_half_pixel"));
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

}  // namespace tare::interchange::onnx
