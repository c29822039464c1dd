// Makes composite operators take the path of the host on the meta device.
#include "tare/trace/composites.h"

#include <ATen/core/grad_mode.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/cudnn_is_acceptable_native.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/gru_cell_native.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/log_softmax_native.h>
#include <ATen/ops/lstm_cell_native.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d_native.h>
#include <ATen/ops/mish_backward_native.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/one_hot_native.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/softmax_native.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "tare/base/immortal.h"
#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/dispatch_key.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recorded_step.h"
#include "tare/trace/recurrent_call.h"

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

/// Cards have a kernel that makes the mask too.
Tensor dropout(const Tensor& input, double share, bool training) {
  const bool draws = training && for_card() && share > 0 && share < 1 && input.numel() > 0;
  if (!draws) return at::native::dropout(input, share, training);
  note_random_numbers();
  return std::get<0>(at::native_dropout(input, share, training));
}

/// Computes the maxima. Without a gradient, the host does not store where they were.
Tensor max_pool1d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef dilation, bool ceil) {
  const bool needs_grad = self.requires_grad() && at::GradMode::is_enabled();
  if (!planning() || needs_grad || for_card())
    return at::native::max_pool1d(self, kernel, stride, padding, dilation, ceil);
  auto sizes = self.sizes().vec();
  sizes.back() =
      at::native::pooling_output_shape(sizes.back(), kernel[0], padding[0],
                                       stride.empty() ? kernel[0] : stride[0], dilation[0], ceil);
  return fresh(sizes, self);
}

/// Notes the name of a composite operator, for which a card has a fused kernel that has no plan.
template <class Run>
auto noted(const char* name, const Run& run) {
  static Immortal<c10::OperatorName> noted_name(name, "");
  std::optional<WorkingOp> working;
  if (for_card()) working.emplace(*noted_name);
  return run();
}

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, at::TensorList hidden,
                                     const Tensor& input_weight, const Tensor& hidden_weight,
                                     const std::optional<Tensor>& input_bias,
                                     const std::optional<Tensor>& hidden_bias) {
  return noted("aten::lstm_cell", [&] {
    return at::native::lstm_cell(input, hidden, input_weight, hidden_weight, input_bias,
                                 hidden_bias);
  });
}

Tensor gru_cell(const Tensor& input, const Tensor& hidden, const Tensor& input_weight,
                const Tensor& hidden_weight, const std::optional<Tensor>& input_bias,
                const std::optional<Tensor>& hidden_bias) {
  return noted("aten::gru_cell", [&] {
    return at::native::gru_cell(input, hidden, input_weight, hidden_weight, input_bias,
                                hidden_bias);
  });
}

Tensor group_norm(const Tensor& input, int64_t groups, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps, bool cudnn) {
  if (!planning()) return at::native::group_norm(input, groups, weight, bias, eps, cudnn);
  const bool needs_grad = input.requires_grad() && at::GradMode::is_enabled();
  if (needs_grad && !for_card() && input.suggest_memory_format() != at::MemoryFormat::Contiguous)
    throw NotPlannable("aten::group_norm", "is not known with channels last in a backward pass",
                       "plan with contiguous()");
  const int64_t samples = input.size(0), channels = input.size(1);
  const Tensor dense = input.contiguous(group_norm_format(input));
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
  const auto hold_class = [] { return hold_on_host(bytes_of(1, at::kLong)); };
  if (libtorch::kOneHotFindsBoth) {
    c10::DataPtr smallest = hold_class();
    const c10::DataPtr greatest = hold_class();
    smallest.clear();
  } else {
    hold_class().clear();
    hold_class().clear();
  }
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

/// A card computes a softmax of a 16-bit type to float32 without a copy.
Tensor softmax(const Tensor& input, int64_t dim, std::optional<c10::ScalarType> dtype) {
  if (for_card() && is_half(input.scalar_type()) && dtype == at::kFloat)
    return at::_softmax(input, dim, /*half_to_float=*/true);
  return at::native::softmax(input, dim, dtype);
}

Tensor log_softmax(const Tensor& input, int64_t dim, std::optional<c10::ScalarType> dtype) {
  if (for_card() && is_half(input.scalar_type()) && dtype == at::kFloat)
    return at::_log_softmax(input, dim, /*half_to_float=*/true);
  return at::native::log_softmax(input, dim, dtype);
}

/// LibTorch asks it for recurrent layers alone.
bool cudnn_is_acceptable(const Tensor& self) {
  if (planning() && for_card()) return cudnn_takes_recurrent(self);
  return at::native::cudnn_is_acceptable(self);
}

}  // namespace

at::MemoryFormat group_norm_format(const Tensor& input) {
  const bool keeps = !for_card() || libtorch::kGroupNormHasTwoMoreKernels;
  return keeps ? input.suggest_memory_format() : at::MemoryFormat::Contiguous;
}

void register_composites() {
  static Immortal<torch::Library> library(
      torch::Library::IMPL, "aten", c10::DispatchKey::AutogradMeta, __FILE__, uint32_t{__LINE__});
  library->impl("scaled_dot_product_attention", &attention);
  library->impl("cudnn_is_acceptable", &cudnn_is_acceptable);
  library->impl("dropout", &dropout);
  library->impl("linear", &linear);
  library->impl("lstm_cell", &lstm_cell);
  library->impl("gru_cell", &gru_cell);
  library->impl("max_pool1d", &max_pool1d);
  library->impl("group_norm", &group_norm);
  library->impl("mish_backward", &mish_backward);
  library->impl("one_hot", &one_hot);
  library->impl("softmax.int", &softmax);
  library->impl("log_softmax.int", &log_softmax);
  add_recurrent_composites(*library);
}

}  // namespace tare::plan
