// The operators whose traces are known to be the host's. tests/trace/operators_test.cpp compares
// each with the host and fails where this list is longer or shorter than what it compares.
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tare/trace/card_workspace.h"
#include "tare/trace/trace.h"
#include "tare/trace/verified_operators.h"

namespace tare::plan {
namespace {

constexpr std::array<std::string_view, 268> kVerified{
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool3d_backward",
    "aten::_foreach_add.List",
    "aten::_foreach_clamp_max_.Scalar",
    "aten::_foreach_clamp_min_.Scalar",
    "aten::_foreach_mul_.Scalar",
    "aten::_foreach_mul_.Tensor",
    "aten::_foreach_norm.Scalar",
    "aten::_fused_adam_",
    "aten::_fused_adamw_",
    "aten::_fused_sgd_",
    "aten::_log_softmax",
    "aten::_log_softmax_backward_data",
    "aten::_prelu_kernel",
    "aten::_prelu_kernel_backward",
    "aten::_safe_softmax",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::_softmax",
    "aten::_softmax_backward_data",
    "aten::_to_copy",
    "aten::_trilinear",
    "aten::_unsafe_view",
    "aten::abs",
    "aten::adaptive_max_pool2d",
    "aten::adaptive_max_pool2d_backward",
    "aten::adaptive_max_pool3d",
    "aten::adaptive_max_pool3d_backward",
    "aten::add.Scalar",
    "aten::add.Tensor",
    "aten::add_.Scalar",
    "aten::add_.Tensor",
    "aten::addcdiv",
    "aten::addcdiv_",
    "aten::addcmul",
    "aten::addcmul_",
    "aten::addmm",
    "aten::all",
    "aten::amax",
    "aten::amin",
    "aten::any.dim",
    "aten::arange",
    "aten::arange.start_step",
    "aten::argmax",
    "aten::atan",
    "aten::avg_pool2d",
    "aten::avg_pool2d_backward",
    "aten::avg_pool3d",
    "aten::avg_pool3d_backward",
    "aten::baddbmm",
    "aten::bernoulli",
    "aten::bernoulli_.float",
    "aten::binary_cross_entropy",
    "aten::binary_cross_entropy_backward",
    "aten::binary_cross_entropy_with_logits",
    "aten::bitwise_not",
    "aten::bmm",
    "aten::cat",
    "aten::celu",
    "aten::clamp",
    "aten::clamp_max",
    "aten::clamp_min",
    "aten::clamp_min_",
    "aten::clamp_min_.Tensor",
    "aten::clone",
    "aten::constant_pad_nd",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::copy_",
    "aten::cos",
    "aten::cumsum",
    "aten::div.Scalar",
    "aten::div.Tensor",
    "aten::div_.Scalar",
    "aten::div_.Tensor",
    "aten::dot",
    "aten::elu",
    "aten::elu_",
    "aten::elu_backward",
    "aten::embedding",
    "aten::embedding_dense_backward",
    "aten::empty.memory_format",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::eq.Scalar",
    "aten::eq.Tensor",
    "aten::equal",
    "aten::erf",
    "aten::exp",
    "aten::exp_",
    "aten::expm1",
    "aten::eye",
    "aten::fill_.Scalar",
    "aten::flip",
    "aten::fractional_max_pool2d",
    "aten::fractional_max_pool2d_backward",
    "aten::full",
    "aten::full_like",
    "aten::gather",
    "aten::ge.Scalar",
    "aten::gelu",
    "aten::gelu_backward",
    "aten::glu",
    "aten::glu_backward",
    "aten::gt.Scalar",
    "aten::gt.Tensor",
    "aten::hardshrink",
    "aten::hardshrink_backward",
    "aten::hardsigmoid",
    "aten::hardsigmoid_backward",
    "aten::hardswish",
    "aten::hardswish_",
    "aten::hardswish_backward",
    "aten::hardtanh",
    "aten::hardtanh_",
    "aten::hardtanh_backward",
    "aten::huber_loss",
    "aten::huber_loss_backward",
    "aten::index.Tensor",
    "aten::index_add",
    "aten::index_put",
    "aten::index_select",
    "aten::isnan",
    "aten::le.Scalar",
    "aten::leaky_relu",
    "aten::leaky_relu_",
    "aten::leaky_relu_backward",
    "aten::lerp.Scalar",
    "aten::linalg_vector_norm",
    "aten::linspace",
    "aten::log",
    "aten::log1p",
    "aten::log2",
    "aten::log_sigmoid_backward",
    "aten::log_sigmoid_forward",
    "aten::logical_and",
    "aten::logical_and_",
    "aten::logsumexp",
    "aten::lt.Scalar",
    "aten::lt.Tensor",
    "aten::masked_fill.Scalar",
    "aten::masked_fill_.Scalar",
    "aten::max.dim",
    "aten::max_pool2d_with_indices",
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices",
    "aten::max_pool3d_with_indices_backward",
    "aten::maximum",
    "aten::mean",
    "aten::mean.dim",
    "aten::min.dim",
    "aten::minimum",
    "aten::mish",
    "aten::mkldnn_rnn_layer",
    "aten::mkldnn_rnn_layer_backward",
    "aten::mm",
    "aten::mse_loss",
    "aten::mse_loss_backward",
    "aten::mul.Scalar",
    "aten::mul.Tensor",
    "aten::mul.out",
    "aten::mul_.Scalar",
    "aten::mul_.Tensor",
    "aten::mv",
    "aten::native_batch_norm",
    "aten::native_batch_norm_backward",
    "aten::native_group_norm",
    "aten::native_group_norm_backward",
    "aten::native_layer_norm",
    "aten::native_layer_norm_backward",
    "aten::ne.Scalar",
    "aten::neg",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::new_zeros",
    "aten::nll_loss2d_backward",
    "aten::nll_loss2d_forward",
    "aten::nll_loss_backward",
    "aten::nll_loss_forward",
    "aten::norm.Scalar",
    "aten::norm.ScalarOpt_dim",
    "aten::normal_",
    "aten::ones",
    "aten::ones_like",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::pow.Tensor_Scalar",
    "aten::pow.Tensor_Tensor",
    "aten::rand",
    "aten::rand_like",
    "aten::randint",
    "aten::randn",
    "aten::reciprocal",
    "aten::reflection_pad1d",
    "aten::reflection_pad1d_backward",
    "aten::reflection_pad2d",
    "aten::reflection_pad2d_backward",
    "aten::relu",
    "aten::relu_",
    "aten::replication_pad1d",
    "aten::replication_pad1d_backward",
    "aten::replication_pad2d",
    "aten::replication_pad2d_backward",
    "aten::roll",
    "aten::rsqrt",
    "aten::scalar_tensor",
    "aten::scatter.src",
    "aten::scatter.value",
    "aten::scatter_add",
    "aten::select_backward",
    "aten::sgn",
    "aten::sigmoid",
    "aten::sigmoid_",
    "aten::sigmoid_backward",
    "aten::sign",
    "aten::silu",
    "aten::silu_",
    "aten::silu_backward",
    "aten::sin",
    "aten::slice_backward",
    "aten::smooth_l1_loss",
    "aten::smooth_l1_loss_backward",
    "aten::soft_margin_loss",
    "aten::soft_margin_loss_backward",
    "aten::softplus",
    "aten::softplus_backward",
    "aten::softshrink",
    "aten::softshrink_backward",
    "aten::sqrt",
    "aten::sqrt_",
    "aten::stack",
    "aten::std.correction",
    "aten::sub.Scalar",
    "aten::sub.Tensor",
    "aten::sub_.Tensor",
    "aten::sum",
    "aten::sum.dim_IntList",
    "aten::tanh",
    "aten::tanh_",
    "aten::tanh_backward",
    "aten::threshold",
    "aten::threshold_backward",
    "aten::topk",
    "aten::tril",
    "aten::triu",
    "aten::uniform_",
    "aten::unsafe_split.Tensor",
    "aten::upsample_bicubic2d",
    "aten::upsample_bicubic2d_backward",
    "aten::upsample_bilinear2d",
    "aten::upsample_bilinear2d_backward",
    "aten::upsample_linear1d",
    "aten::upsample_linear1d_backward",
    "aten::upsample_nearest1d",
    "aten::upsample_nearest1d_backward",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest2d_backward",
    "aten::upsample_trilinear3d",
    "aten::upsample_trilinear3d_backward",
    "aten::var.correction",
    "aten::var_mean.correction",
    "aten::where.self",
    "aten::xlogy.Tensor",
    "aten::zero_",
    "aten::zeros",
    "aten::zeros_like",
};

/// Operators that a card alone has; tests/trace/cuda_every_operator_test.cpp compares them.
constexpr std::array<std::string_view, 12> kOfACard{
    "aten::_amp_foreach_non_finite_check_and_unscale_",
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
    "aten::_cudnn_rnn_flatten_weight",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::native_dropout",
    "aten::native_dropout_backward"};

/// Operators of optimizers and of offload, which tests/learner/cuda_exact_plan_test.cpp compares on
/// a card, and those of recorded steps, which tests/learner/cuda_graph_test.cpp compares.
constexpr std::array<std::string_view, 8> kOfStepsOnACard{
    "aten::_fused_adam_.tensor_lr",
    "aten::_fused_adamw_.tensor_lr",
    "aten::_fused_sgd_.tensor_lr",
    "aten::bucketize.Tensor",
    "aten::lerp_.Scalar",
    "aten::pow.Scalar",
    "aten::reciprocal_",
    "aten::set_.source_Storage_storage_offset"};

/// Operators that are compared with the host alone: on a card their traces differ.
constexpr std::array<std::string_view, 5> kOfTheHost{"aten::_index_put_impl_", "aten::gru_cell",
                                                     "aten::index_put", "aten::index_put_",
                                                     "aten::lstm_cell"};

/// Whether an operator returns views, which take no memory anywhere. The operator `squeeze_.dim`
/// makes its operand the view that `squeeze.dim` returns.
bool is_view(const std::string& called) {
  const auto dot = called.find('.');
  std::string name = called.substr(0, dot);
  if (name.ends_with('_')) name.pop_back();
  const auto op = c10::Dispatcher::singleton().findSchema(
      {name, dot == std::string::npos ? "" : called.substr(dot + 1)});
  return op && !op->schema().returns().empty() &&
         std::ranges::all_of(op->schema().returns(), [](const c10::Argument& result) {
           return result.alias_info() && !result.alias_info()->isWrite();
         });
}

}  // namespace

std::span<const std::string_view> verified_operators() { return kVerified; }

std::vector<std::string> unverified(const Trace& trace) {
  std::vector<std::string> names;
  std::ranges::copy_if(trace.called, std::back_inserter(names), [](const std::string& name) {
    return !std::ranges::binary_search(kVerified, name) &&
           !std::ranges::binary_search(kOfACard, name) && !is_view(name);
  });
  return names;
}

std::vector<std::string> not_counted_on_card(const Trace& trace) {
  std::vector<std::string> names = unverified(trace);
  std::erase_if(names, [](const std::string& name) {
    return std::ranges::binary_search(kOfStepsOnACard, name);
  });
  std::ranges::copy_if(trace.called, std::back_inserter(names), [](const std::string& name) {
    return std::ranges::binary_search(kOfTheHost, name);
  });
  for (std::string& name : names) name.insert(0, "the temporary memory of ");
  if (trace.find(kUnknownWorkspace)) names.emplace_back(kWorkspaces);
  if (trace.find(kUnknownAttention)) names.emplace_back(kAttentionWorkspaces);
  if (trace.find(kUnknownRecurrent)) names.emplace_back(kRecurrentMemory);
  if (trace.find(kOwnConvolution))
    names.emplace_back("the temporary memory of convolutions without cuDNN");
  return names;
}

}  // namespace tare::plan
