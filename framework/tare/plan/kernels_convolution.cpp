// Convolutions: what they allocate on the host is looked up in their profile and played back.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>

#include <tuple>

#include "tare/plan/blocks.h"
#include "tare/plan/convolution_profile.h"
#include "tare/plan/dispatch.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;

Tensor make(const Layout& layout) {
  return at::empty_strided(layout.sizes, layout.strides,
                           at::TensorOptions(layout.type).device(c10::kMeta));
}

std::vector<Tensor> play(const Profile& profile) {
  std::vector<Tensor> results(profile.results.size());
  std::vector<c10::DataPtr> blocks;
  for (const auto& [block, bytes, result] : profile.steps) {
    if (bytes == 0) {
      blocks[block].clear();
    } else if (result >= 0) {
      results[static_cast<size_t>(result)] = make(profile.results[static_cast<size_t>(result)]);
      blocks.emplace_back();
    } else {
      blocks.push_back(hold(bytes));
    }
  }
  return results;
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
  return play(profile(call)).front();
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
  auto results = play(profile(call));
  return {results[0], results[1], results[2]};
}

}  // namespace

void add_convolution_kernels(Kernels& kernels) {
  kernels.add("aten::convolution", &convolution);
  kernels.add("aten::convolution_backward", &convolution_backward);
}

}  // namespace tare::plan
