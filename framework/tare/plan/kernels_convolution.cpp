// Convolutions: what they allocate on the host is looked up in their profile and played back.
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <tuple>

#include "tare/plan/convolution_profile.h"
#include "tare/plan/dispatch.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;

/// Nothing but the results outlives a convolution.
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

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
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
