// Convolutions. What they allocate on the host is looked up in their profile and played back; on a
// card they take what cuDNN is given: operands in one memory format, and the results.
#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/utils/ParamUtils.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/convolution_profile.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;

/// Returns the results of a convolution, which alone outlive it.
std::vector<Tensor> results_of(const Convolution& call) {
  std::vector<c10::DataPtr> held;
  return play(profile(call), held);
}

Convolution call_of(const Tensor& input, const Tensor& weight, IntArrayRef stride,
                    IntArrayRef padding, IntArrayRef dilation, bool transposed,
                    IntArrayRef output_padding, int64_t groups) {
  return {.input = Layout::of(input),
          .weight = Layout::of(weight),
          .stride = stride.vec(),
          .padding = padding.vec(),
          .dilation = dilation.vec(),
          .output_padding = output_padding.vec(),
          .transposed = transposed,
          .groups = groups};
}

/// cuDNN works with channels last if one of the operands has them last, but not in float64
/// (cudnn_conv_suggest_memory_format in ATen/native/ConvUtils.h).
at::MemoryFormat card_format(const Tensor& input, const Tensor& weight) {
  if (input.scalar_type() == at::kDouble) return at::MemoryFormat::Contiguous;
  const auto format = input.suggest_memory_format();
  return format == at::MemoryFormat::Contiguous ? weight.suggest_memory_format() : format;
}

Tensor empty_like(const Tensor& like, IntArrayRef sizes, at::MemoryFormat format) {
  return at::empty(sizes, like.options(), format);
}

/// The bias is added in place.
Tensor card_convolution(const Tensor& input, const Tensor& weight, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool transposed,
                        IntArrayRef output_padding, int64_t groups) {
  const auto format = card_format(input, weight);
  const auto dense_input = hold_contiguous(input, format),
             dense_weight = hold_contiguous(weight, format);
  const auto each = [&](IntArrayRef list) {
    return at::native::expand_param_if_needed(list, "convolution", input.dim() - 2);
  };
  const auto sizes =
      transposed
          ? at::native::conv_input_size(input.sizes(), weight.sizes(), each(padding),
                                        each(output_padding), each(stride), each(dilation), groups)
          : at::native::conv_output_size(input.sizes(), weight.sizes(), each(padding), each(stride),
                                         each(dilation));
  return empty_like(input, sizes, format);
}

std::tuple<Tensor, Tensor, Tensor> card_convolution_backward(const Tensor& grad_output,
                                                             const Tensor& input,
                                                             const Tensor& weight,
                                                             const std::array<bool, 3>& mask) {
  const auto format = card_format(input, weight);
  const auto dense_grad = hold_contiguous(grad_output, format);
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) {
    const auto dense_weight = hold_contiguous(weight, format);
    grad_input = empty_like(input, input.sizes(), format);
  }
  if (mask[1]) {
    const auto dense_input = hold_contiguous(input, format);
    grad_weight = empty_like(weight, weight.sizes(), format);
  }
  if (mask[2]) grad_bias = fresh({grad_output.size(1)}, grad_output);
  return {grad_input, grad_weight, grad_bias};
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
  if (for_card())
    return card_convolution(input, weight, stride, padding, dilation, transposed, output_padding,
                            groups);
  auto call = call_of(input, weight, stride, padding, dilation, transposed, output_padding, groups);
  if (bias) call.bias = Layout::of(*bias);
  call.needs_grad = at::GradMode::is_enabled() && (input.requires_grad() || weight.requires_grad());
  return results_of(call).front();
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output,
                                                        const Tensor& input, const Tensor& weight,
                                                        at::OptionalIntArrayRef bias_sizes,
                                                        IntArrayRef stride, IntArrayRef padding,
                                                        IntArrayRef dilation, bool transposed,
                                                        IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> mask) {
  if (for_card()) return card_convolution_backward(grad_output, input, weight, mask);
  auto call = call_of(input, weight, stride, padding, dilation, transposed, output_padding, groups);
  call.grad_output = Layout::of(grad_output);
  if (bias_sizes) call.bias = {bias_sizes->vec(), {1}, weight.scalar_type()};
  call.mask = mask;
  auto results = results_of(call);
  return {results[0], results[1], results[2]};
}

}  // namespace

void add_convolution_kernels(Kernels& kernels) {
  kernels.add("aten::convolution", &convolution);
  kernels.add("aten::convolution_backward", &convolution_backward);
}

}  // namespace tare::plan
