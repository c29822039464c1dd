// Convolutions. What they allocate on the host is looked up in their profile and played back; on a
// card they take what cuDNN is given: operands in one memory format, and the results.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/utils/ParamUtils.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/strides.h>

#include <tuple>
#include <utility>

#include "tare/memory/libtorch.h"
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

/// Returns an empty tensor whose memory LibTorch takes by a resize. Where the memory has to be
/// filled, an element of another tensor is there for a moment.
Tensor resized_like(const Tensor& like, IntArrayRef sizes) {
  const auto& context = at::globalContext();
  Tensor resized = empty_like(like, sizes, at::MemoryFormat::Contiguous);
  if (libtorch::kResizeTakesAnElement && context.deterministicAlgorithms() &&
      context.deterministicFillUninitializedMemory())
    hold(bytes_of(1, like.scalar_type())).clear();
  return resized;
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

/// Returns the tensor where it lies so, else a copy without gaps.
Tensor contiguous(const Tensor& tensor, at::MemoryFormat format) {
  return tensor.is_contiguous(format) ? tensor : empty_like(tensor, tensor.sizes(), format);
}

/// The operands of cuDNN's convolutions, as LibTorch hands them over
/// (ATen/native/cudnn/ConvShared.cpp). The layouts of the call that it is made with do not count.
/// cuDNN's forward computes a convolution or, in the backward, the gradient of a transposed one's
/// input; its gradient of an input computes a transposed convolution or the gradient of another
/// one's input.
class CudnnConvolution {
 public:
  explicit CudnnConvolution(Convolution call) : call_(std::move(call)) {}

  /// One channel of one pixel is laid out in both formats, and the operands follow what the result
  /// says of itself.
  [[nodiscard]] Tensor forward(const Tensor& input, const Tensor& weight, IntArrayRef sizes) {
    Tensor result = empty_like(input, sizes, card_format(input, weight));
    compute(result, input, weight, result.suggest_memory_format(), call_.transposed);
    return result;
  }
  [[nodiscard]] Tensor backward_input(const Tensor& grad, const Tensor& weight, IntArrayRef sizes) {
    const auto format = card_format(grad, weight);
    Tensor result = empty_like(grad, sizes, format);
    compute(result, grad, weight, format, !call_.transposed);
    return result;
  }
  [[nodiscard]] Tensor backward_weight(const Tensor& grad, const Tensor& input,
                                       const Tensor& weight) {
    const auto format = card_format(input, grad);
    const auto grad_copy = hold_contiguous(grad, format), copy = hold_contiguous(input, format);
    Tensor result = empty_like(grad, weight.sizes(), format);
    take_workspace(input, weight, grad, format, {false, true, false});
    return result;
  }

 private:
  /// Takes what cuDNN needs for a result from the output's gradient in the backward, else from the
  /// input.
  void compute(const Tensor& result, const Tensor& from, const Tensor& weight,
               at::MemoryFormat format, bool in_backward) {
    const auto weight_copy = hold_contiguous(weight, format), copy = hold_contiguous(from, format);
    if (in_backward)
      take_workspace(result, weight, from, format, {true, false, false});
    else
      take_workspace(from, weight, {}, format, {});
  }
  /// Holds for a moment what cuDNN takes for one result, from operands in one format.
  void take_workspace(const Tensor& input, const Tensor& weight, const Tensor& grad_output,
                      at::MemoryFormat format, std::array<bool, 3> mask) {
    call_.input = dense(input, format);
    call_.weight = dense(weight, format);
    if (grad_output.defined()) call_.grad_output = dense(grad_output, format);
    call_.mask = mask;
    (void)hold_workspace(call_);
  }

  Convolution call_;
};

/// The bias is added in place.
Tensor card_convolution(const Tensor& input, const Tensor& weight, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool transposed,
                        IntArrayRef output_padding, int64_t groups) {
  const auto each = [&](IntArrayRef list) {
    return at::native::expand_param_if_needed(list, "convolution", input.dim() - 2);
  };
  const auto sizes =
      transposed
          ? at::native::conv_input_size(input.sizes(), weight.sizes(), each(padding),
                                        each(output_padding), each(stride), each(dilation), groups)
          : at::native::conv_output_size(input.sizes(), weight.sizes(), each(padding), each(stride),
                                         each(dilation));
  const Tensor dense_input = contiguous(input, card_format(input, weight));
  if (!transposed && is_depthwise(input, weight, groups)) {
    const auto weight_copy = hold_contiguous(weight);
    return resized_like(input, sizes);
  }
  CudnnConvolution cudnn(
      call_of(input, weight, stride, padding, dilation, transposed, output_padding, groups));
  return transposed ? cudnn.backward_input(dense_input, weight, sizes)
                    : cudnn.forward(dense_input, weight, sizes);
}

/// LibTorch's own kernels.
std::tuple<Tensor, Tensor> card_depthwise_backward(const Tensor& grad_output, const Tensor& input,
                                                   const Tensor& weight,
                                                   const std::array<bool, 3>& mask) {
  Tensor grad_input, grad_weight;
  if (mask[1]) {
    const auto grad_copy = hold_contiguous(grad_output), copy = hold_contiguous(input);
    grad_weight = resized_like(weight, weight.sizes());
  }
  if (mask[0]) {
    grad_input = resized_like(input, input.sizes());
    const auto weight_copy = hold_contiguous(weight);
  }
  return {grad_input, grad_weight};
}

/// `call`: without layouts.
std::tuple<Tensor, Tensor> card_cudnn_backward(const Convolution& call, const Tensor& grad_output,
                                               const Tensor& given, const Tensor& weight,
                                               const std::array<bool, 3>& mask) {
  const Tensor input = mask[1] ? contiguous(given, card_format(given, weight)) : given;
  const auto format = input.suggest_memory_format();
  CudnnConvolution cudnn(call);
  Tensor grad_input, grad_weight;
  if (call.transposed) {
    const Tensor grad = contiguous(grad_output, format);
    if (mask[0]) grad_input = cudnn.forward(grad, weight, input.sizes());
    if (mask[1]) grad_weight = cudnn.backward_weight(grad, input, weight);
  } else {
    const Tensor grad = grad_output.suggest_memory_format() == format
                            ? grad_output
                            : empty_like(grad_output, grad_output.sizes(), format);
    if (mask[0]) grad_input = cudnn.backward_input(grad, weight, input.sizes());
    if (mask[1]) grad_weight = cudnn.backward_weight(grad, input, weight);
  }
  return {grad_input, grad_weight};
}

std::tuple<Tensor, Tensor, Tensor> card_convolution_backward(const Convolution& call,
                                                             const Tensor& grad_output,
                                                             const Tensor& input,
                                                             const Tensor& weight,
                                                             const std::array<bool, 3>& mask) {
  auto [grad_input, grad_weight] =
      !call.transposed && is_depthwise(input, weight, call.groups)
          ? card_depthwise_backward(grad_output, input, weight, mask)
          : card_cudnn_backward(call, grad_output, input, weight, mask);
  Tensor grad_bias;
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
