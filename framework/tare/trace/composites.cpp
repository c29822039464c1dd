// Makes composite operators take the path of the host on the meta device.
#include "tare/trace/composites.h"

#include <ATen/core/grad_mode.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d_native.h>
#include <ATen/ops/mish_backward_native.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/one_hot_native.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/library.h>

#include <tuple>

#include "tare/base/immortal.h"
#include "tare/trace/blocks.h"
#include "tare/trace/dispatch_key.h"
#include "tare/trace/not_plannable.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  const auto& run = planning() ? planned_attention : at::native::scaled_dot_product_attention;
  return run(query, key, value, mask, dropout, causal, scale, grouped);
}

/// Computes the maxima. Without a gradient, the host does not store where they were.
Tensor max_pool1d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef dilation, bool ceil) {
  const bool needs_grad = self.requires_grad() && at::GradMode::is_enabled();
  if (!planning() || needs_grad)
    return at::native::max_pool1d(self, kernel, stride, padding, dilation, ceil);
  auto sizes = self.sizes().vec();
  sizes.back() =
      at::native::pooling_output_shape(sizes.back(), kernel[0], padding[0],
                                       stride.empty() ? kernel[0] : stride[0], dilation[0], ceil);
  return fresh(sizes, self);
}

/// Channels that come last stay so on the host only.
Tensor group_norm(const Tensor& input, int64_t groups, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps, bool cudnn) {
  if (!planning()) return at::native::group_norm(input, groups, weight, bias, eps, cudnn);
  const bool needs_grad = input.requires_grad() && at::GradMode::is_enabled();
  if (needs_grad && input.suggest_memory_format() != at::MemoryFormat::Contiguous)
    throw NotPlannable("aten::group_norm", "is not known with channels last in a backward pass",
                       "plan with contiguous()");
  const int64_t samples = input.size(0), channels = input.size(1);
  const Tensor dense = input.contiguous(input.suggest_memory_format());
  return std::get<0>(at::native_group_norm(
      dense, weight && weight->defined() ? std::optional(weight->contiguous()) : std::nullopt,
      bias && bias->defined() ? std::optional(bias->contiguous()) : std::nullopt, samples, channels,
      input.numel() / (samples * channels), groups, eps));
}

/// The host looks at the smallest and the greatest class.
Tensor one_hot(const Tensor& self, int64_t classes) {
  if (!planning()) return at::native::one_hot(self, classes);
  if (classes <= 0)
    throw NotPlannable("aten::one_hot", "reads the greatest class, and a plan has none",
                       "give the number of classes");
  for (int i = 0; i < 2; ++i) hold(bytes_of(1, at::kLong)).clear();
  auto sizes = self.sizes().vec();
  sizes.push_back(classes);
  return fresh(sizes, self);
}

/// The host adds the bias in place; where LibTorch has no storage to look at it does not.
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  const bool in_one = !bias || !bias->defined() || input.dim() == 2 || input.is_contiguous();
  if (!planning() || in_one) return at::native::linear(input, weight, bias);
  return at::matmul(input, weight.t()).add_(*bias);
}

Tensor mish_backward(const Tensor& grad, const Tensor& self) {
  return planning() ? at::empty_like(self) : at::native::math_mish_backward(grad, self);
}

}  // namespace

void register_composites() {
  static Immortal<torch::Library> library(
      torch::Library::IMPL, "aten", c10::DispatchKey::AutogradMeta, __FILE__, uint32_t{__LINE__});
  library->impl("scaled_dot_product_attention", &attention);
  library->impl("linear", &linear);
  library->impl("max_pool1d", &max_pool1d);
  library->impl("group_norm", &group_norm);
  library->impl("mish_backward", &mish_backward);
  library->impl("one_hot", &one_hot);
  add_recurrent_composites(*library);
}

}  // namespace tare::plan
