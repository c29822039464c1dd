// A host kernel of aten::convolution_backward that passes all calls but a few to LibTorch.
#include "tare/memory/convolution_bounds.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward_native.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "tare/memory/host_kernels.h"

namespace tare::memory {
namespace {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

constexpr int64_t kVector = 16;  // float32 numbers of AVX-512, the widest of oneDNN's vectors

bool channels_are_innermost(const at::Tensor& tensor) {
  return tensor.suggest_memory_format() != at::MemoryFormat::Contiguous;
}

bool leaves_its_memory(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride) {
  const auto is_one = [](int64_t size) { return size == 1; };
  const at::IntArrayRef kernel = weight.sizes().slice(2);
  return weight.size(1) < kVector && std::all_of(kernel.begin(), kernel.end(), is_one) &&
         !std::all_of(stride.begin(), stride.end(), is_one) &&
         (channels_are_innermost(input) || channels_are_innermost(weight));
}

Gradients convolution_backward(const at::Tensor& grad_output, const at::Tensor& input,
                               const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
                               at::IntArrayRef stride, at::IntArrayRef padding,
                               at::IntArrayRef dilation, bool transposed,
                               at::IntArrayRef output_padding, int64_t groups,
                               std::array<bool, 3> mask) {
  const auto gradients = [&](const at::Tensor& output, const at::Tensor& in, const at::Tensor& by) {
    return at::native::convolution_backward(output, in, by, bias_sizes, stride, padding, dilation,
                                            transposed, output_padding, groups, mask);
  };
  if (!mask[1] || !leaves_its_memory(input, weight, stride)) [[likely]]
    return gradients(grad_output, input, weight);
  // A copy also where sizes of 1 let a tensor lie in both ways at once: its strides say which.
  const auto copy = [](const at::Tensor& tensor) {
    return tensor.clone(at::MemoryFormat::Contiguous);
  };
  auto [of_input, of_weight, of_bias] = gradients(copy(grad_output), copy(input), copy(weight));
  if (of_input.defined()) of_input = of_input.contiguous(input.suggest_memory_format());
  return {of_input, of_weight, of_bias};
}

}  // namespace

void keep_convolutions_in_bounds() {
  static const bool registered =
      (set_host_kernel("convolution_backward", &convolution_backward), true);
  static_cast<void>(registered);
}

}  // namespace tare::memory
