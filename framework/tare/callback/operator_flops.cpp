// Computes the operations of operators from the sizes of their operands.
#include "tare/callback/operator_flops.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tare {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const at::Tensor& tensor(Inputs inputs, size_t index) { return inputs[index].toTensor(); }

// [..., rows, inner] times [..., inner, columns].
int64_t product(const at::Tensor& left, const at::Tensor& right) {
  return 2 * left.numel() * right.size(-1);
}
int64_t mm(Inputs inputs) { return product(tensor(inputs, 0), tensor(inputs, 1)); }
int64_t addmm(Inputs inputs) { return product(tensor(inputs, 1), tensor(inputs, 2)); }
int64_t mv(Inputs inputs) { return 2 * tensor(inputs, 0).numel(); }
int64_t addmv(Inputs inputs) { return 2 * tensor(inputs, 1).numel(); }

int64_t area(const at::Tensor& images) {
  int64_t all = 1;
  for (int64_t i = 2; i < images.dim(); ++i) all *= images.size(i);
  return all;
}

// A convolution uses each weight once for each place of its output, a transposed one once for each
// place of its input; so do the gradients of input and weight.
int64_t convolved(const at::Tensor& weight, int64_t samples, int64_t places) {
  return 2 * samples * places * weight.numel();
}

int64_t output_area(const at::Tensor& images, const at::Tensor& weight, Inputs inputs) {
  const auto size = [&](size_t index, size_t side) {
    const std::vector<int64_t> sizes = inputs[index].toIntVector();
    return sizes[std::min(side, sizes.size() - 1)];
  };
  int64_t all = 1;
  for (int64_t i = 2; i < images.dim(); ++i) {
    const auto side = static_cast<size_t>(i) - 2;
    const int64_t stride = size(3, side), padding = size(4, side), dilation = size(5, side);
    all *= (images.size(i) + 2 * padding - dilation * (weight.size(i) - 1) - 1) / stride + 1;
  }
  return all;
}

int64_t convolution(Inputs inputs) {
  const at::Tensor &images = tensor(inputs, 0), &weight = tensor(inputs, 1);
  const bool transposed = inputs[6].toBool();
  return convolved(weight, images.size(0),
                   transposed ? area(images) : output_area(images, weight, inputs));
}

int64_t convolution_backward(Inputs inputs) {
  const at::Tensor &gradient = tensor(inputs, 0), &images = tensor(inputs, 1);
  const bool transposed = inputs[7].toBool();
  const auto wanted = inputs[10].toBoolList();  // the gradients of input, weight and bias
  const int64_t one =
      convolved(tensor(inputs, 2), images.size(0), area(transposed ? images : gradient));
  return (wanted[0] ? one : 0) + (wanted[1] ? one : 0);
}

// Query [batch, heads, queries, width] with key and value [batch, heads, keys, width]: the scores
// and their product with the values.
int64_t attended(Inputs inputs, size_t query) {
  const at::Tensor &q = tensor(inputs, query), &k = tensor(inputs, query + 1),
                   &v = tensor(inputs, query + 2);
  return 2 * q.size(0) * q.size(1) * q.size(2) * k.size(2) * (q.size(3) + v.size(3));
}
int64_t attention(Inputs inputs) { return attended(inputs, 0); }
// Two products for each one of the forward.
int64_t attention_backward(Inputs inputs) { return 2 * attended(inputs, 1); }

// A recurrent layer multiplies each of its matrices with a vector at each step of each sample.
int64_t steps_of(const at::Tensor& input, bool packed) {
  return packed ? input.size(0) : input.size(0) * input.size(1);
}
int64_t elements_of_matrices(const std::vector<at::Tensor>& weights) {
  int64_t all = 0;
  for (const at::Tensor& weight : weights) all += weight.dim() > 1 ? weight.numel() : 0;
  return all;
}

int64_t cudnn_rnn(Inputs inputs) {
  const bool packed = !inputs[14].toIntVector().empty();
  return 2 * steps_of(tensor(inputs, 0), packed) * elements_of_matrices(inputs[1].toTensorVector());
}

int64_t cudnn_rnn_backward(Inputs inputs) {
  const std::vector<at::Tensor> weights = inputs[1].toTensorVector();
  const auto in_a_direction = static_cast<size_t>(inputs[2].toInt());
  const auto wanted = inputs[21].toBoolList();  // the gradients of input, states and weights
  const int64_t all = elements_of_matrices(weights);
  int64_t elements = all;
  if (!wanted[0])  // of the first layer, the matrices of the input
    for (size_t i = 0; i < (inputs[17].toBool() ? 2U : 1U); ++i)
      elements -= weights[i * in_a_direction].numel();
  if (wanted[3]) elements += all;
  return 2 * steps_of(tensor(inputs, 0), !inputs[18].toIntVector().empty()) * elements;
}

// oneDNN: one layer in one direction, with the matrices of the input and of the state.
int64_t mkldnn_rnn(Inputs inputs) {
  const bool packed = !inputs[8].toIntVector().empty();
  return 2 * steps_of(tensor(inputs, 0), packed) *
         (tensor(inputs, 1).numel() + tensor(inputs, 2).numel());
}

int64_t mkldnn_rnn_backward(Inputs inputs) {
  const at::Tensor &input = tensor(inputs, 0), &of_input = tensor(inputs, 1),
                   &of_state = tensor(inputs, 2);
  int64_t elements = of_state.numel() * (of_state.requires_grad() ? 2 : 1);
  if (input.requires_grad()) elements += of_input.numel();
  if (of_input.requires_grad()) elements += of_input.numel();
  return 2 * steps_of(input, !inputs[20].toIntVector().empty()) * elements;
}

constexpr bool kByCudnn = true;

constexpr std::array kFormulas{
    FlopFormula{"mm", mm, 0},
    FlopFormula{"bmm", mm, 0},
    FlopFormula{"addmm", addmm, 1},
    FlopFormula{"baddbmm", addmm, 1},
    FlopFormula{"addbmm", addmm, 1},
    FlopFormula{"_addmm_activation", addmm, 1},
    FlopFormula{"mv", mv, 0},
    FlopFormula{"addmv", addmv, 1},
    FlopFormula{"convolution", convolution, 1, kByCudnn},
    FlopFormula{"_convolution", convolution, 1, kByCudnn},
    FlopFormula{"convolution_backward", convolution_backward, 2, kByCudnn},
    FlopFormula{"_scaled_dot_product_flash_attention", attention, 0},
    FlopFormula{"_scaled_dot_product_flash_attention_for_cpu", attention, 0},
    FlopFormula{"_scaled_dot_product_efficient_attention", attention, 0},
    FlopFormula{"_scaled_dot_product_cudnn_attention", attention, 0},
    FlopFormula{"_scaled_dot_product_fused_attention_overrideable", attention, 0},
    FlopFormula{"_scaled_dot_product_flash_attention_backward", attention_backward, 1},
    FlopFormula{"_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, 1},
    FlopFormula{"_scaled_dot_product_efficient_attention_backward", attention_backward, 1},
    FlopFormula{"_scaled_dot_product_cudnn_attention_backward", attention_backward, 1},
    FlopFormula{"_scaled_dot_product_fused_attention_overrideable_backward", attention_backward, 1},
    FlopFormula{"_cudnn_rnn", cudnn_rnn, 0, kByCudnn},
    FlopFormula{"_cudnn_rnn_backward", cudnn_rnn_backward, 0, kByCudnn},
    FlopFormula{"mkldnn_rnn_layer", mkldnn_rnn, 0},
    FlopFormula{"mkldnn_rnn_layer_backward", mkldnn_rnn_backward, 0},
};

}  // namespace

const FlopFormula* flop_formula_of(std::string_view name) {
  constexpr std::string_view kNamespace = "aten::";
  if (!name.starts_with(kNamespace)) return nullptr;
  name.remove_prefix(kNamespace.size());
  if (name.ends_with('_')) name.remove_suffix(1);  // in place
  const auto* const found = std::ranges::find(kFormulas, name, &FlopFormula::name);
  return found == kFormulas.end() ? nullptr : found;
}

int64_t Flops::*flop_type_of(const FlopFormula& formula, const at::Tensor& operand) {
  switch (operand.scalar_type()) {
    case c10::kHalf:
      return &Flops::fp16;
    case c10::kBFloat16:
      return &Flops::bf16;
    case c10::kFloat: {
      if (!operand.is_cuda()) return &Flops::fp32;
      const auto& context = at::globalContext();
      const bool in_tf32 = formula.by_cudnn ? context.allowTF32CuDNN() : context.allowTF32CuBLAS();
      return in_tf32 ? &Flops::tf32 : &Flops::fp32;
    }
    default:
      return &Flops::others;
  }
}

}  // namespace tare
