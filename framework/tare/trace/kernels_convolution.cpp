// Convolutions. What they allocate on the host is looked up in their profile and played back; on a
// card they take what cuDNN is given: operands in one memory format, and the results.
#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/utils/ParamUtils.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/strides.h>

#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/card_workspace.h"
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

/// LibTorch's own kernels do images of float32 whose channels are convolved each by itself.
bool is_depthwise(const Tensor& input, const Tensor& weight, int64_t groups) {
  return input.dim() == 4 && groups > 1 && input.size(1) == groups &&
         weight.size(0) % groups == 0 && card_format(input, weight) == at::MemoryFormat::Contiguous;
}

std::vector<int64_t> strides_without_gaps(IntArrayRef sizes) {
  const auto strides = c10::contiguous_strides(sizes);
  return {strides.begin(), strides.end()};
}

/// Returns the layout of a tensor without gaps.
Layout dense(const Tensor& tensor, at::MemoryFormat format) {
  Layout layout{.sizes = tensor.sizes().vec(), .type = tensor.scalar_type()};
  layout.strides =
      format == at::MemoryFormat::ChannelsLast     ? c10::get_channels_last_strides_2d(layout.sizes)
      : format == at::MemoryFormat::ChannelsLast3d ? c10::get_channels_last_strides_3d(layout.sizes)
                                                   : strides_without_gaps(layout.sizes);
  return layout;
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
  Tensor result = empty_like(input, sizes, format);
  if (!transposed && is_depthwise(input, weight, groups)) return result;
  Convolution call =
      call_of(input, weight, stride, padding, dilation, transposed, output_padding, groups);
  call.input = dense(input, format);
  call.weight = dense(weight, format);
  (void)hold_workspace(call);
  return result;
}

/// Which kernels a card takes for a convolution.
enum class CardKernels { cudnn, transposed, depthwise };

CardKernels kernels_of(const Tensor& input, const Tensor& weight, bool transposed, int64_t groups) {
  if (transposed) return CardKernels::transposed;
  return is_depthwise(input, weight, groups) ? CardKernels::depthwise : CardKernels::cudnn;
}

/// Holds for a moment what cuDNN takes for one gradient of a backward, from operands in one format.
void take_workspace(Convolution call, const Tensor& grad_output, const Tensor& input,
                    const Tensor& weight, at::MemoryFormat format, std::array<bool, 3> mask) {
  call.input = dense(input, format);
  call.weight = dense(weight, format);
  call.grad_output = dense(grad_output, format);
  call.mask = mask;
  (void)hold_workspace(call);
}

/// `call`: of the backward, without operands.
Tensor card_grad_input(const Convolution& call, const Tensor& grad_output, const Tensor& input,
                       const Tensor& weight, CardKernels kernels) {
  const auto format = card_format(grad_output, weight);
  Tensor result = empty_like(input, input.sizes(), format);
  const bool copies_grad = kernels == CardKernels::cudnn;
  const auto dense_weight = hold_contiguous(weight, format),
             dense_grad = hold(copies_grad ? copied_bytes(grad_output, format) : 0);
  if (kernels != CardKernels::depthwise)
    take_workspace(call, grad_output, input, weight, format, {true, false, false});
  return result;
}

Tensor card_grad_weight(const Convolution& call, const Tensor& grad_output, const Tensor& input,
                        const Tensor& weight, CardKernels kernels) {
  const auto format = card_format(input, grad_output);
  const bool copies_grad = kernels != CardKernels::transposed;
  const auto dense_grad = hold(copies_grad ? copied_bytes(grad_output, format) : 0),
             dense_input = hold_contiguous(input, format);
  Tensor result = empty_like(weight, weight.sizes(), format);
  if (kernels != CardKernels::depthwise)
    take_workspace(call, grad_output, input, weight, format, {false, true, false});
  return result;
}

std::tuple<Tensor, Tensor, Tensor> card_convolution_backward(const Convolution& call,
                                                             const Tensor& grad_output,
                                                             const Tensor& input,
                                                             const Tensor& weight,
                                                             const std::array<bool, 3>& mask) {
  const CardKernels kernels = kernels_of(input, weight, call.transposed, call.groups);
  const bool transposed = kernels == CardKernels::transposed,
             depthwise = kernels == CardKernels::depthwise;
  c10::DataPtr copy =
      hold(transposed ? copied_bytes(grad_output, input.suggest_memory_format()) : 0);
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[1] && depthwise)
    grad_weight = card_grad_weight(call, grad_output, input, weight, kernels);
  if (mask[0]) grad_input = card_grad_input(call, grad_output, input, weight, kernels);
  if (mask[1] && !depthwise)
    grad_weight = card_grad_weight(call, grad_output, input, weight, kernels);
  copy.clear();
  if (mask[2]) {
    std::vector<int64_t> all{0};
    for (int64_t dim = 2; dim < grad_output.dim(); ++dim) all.push_back(dim);
    grad_bias = grad_output.sum(all);
  }
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
  auto call = call_of(input, weight, stride, padding, dilation, transposed, output_padding, groups);
  if (for_card()) return card_convolution_backward(call, grad_output, input, weight, mask);
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
