// Computes batch norms over the batches of all ranks.
#include "tare/parallel/sync_batch_norm.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <vector>

#include "tare/base/immortal.h"

namespace tare::parallel {
namespace {

// A key that LibTorch gives to no tensor here. Behind it come autograd and the kernels.
constexpr auto kKey = c10::DispatchKey::DeferredInit;

struct Scope {
  Group* group = nullptr;
  bool counts = true;
};
thread_local Scope t_scope;

/// Returns the shape [1, channels, 1, ...] of values by channel for an input.
std::vector<int64_t> by_channel(const at::Tensor& input) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  return shape;
}

std::vector<int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < input.dim(); ++i)
    if (i != 1) dims.push_back(i);
  return dims;
}

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class Normalise final : public torch::autograd::Function<Normalise> {
 public:
  /// Returns the output, the mean, the variance without correction and the number of values of a
  /// channel, over all ranks.
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& weight, const at::Tensor& bias, double eps) {
    const c10::impl::ExcludeDispatchKeyGuard below(kKey);
    const Scope scope = t_scope;
    const auto dims = all_but_channels(input), shape = by_channel(input);
    const double own = scope.counts ? 1 : 0;
    const at::Tensor x = input.to(at::kFloat);
    const auto values = static_cast<double>(x.numel() / x.size(1));
    at::Tensor sums = at::cat({x.sum(dims, false, at::kDouble).mul(own),
                               at::full({1}, values * own, x.options().dtype(at::kDouble))});
    scope.group->sum({sums});
    const at::Tensor count = sums.narrow(0, x.size(1), 1);
    const at::Tensor mean = sums.narrow(0, 0, x.size(1)).div(count);
    const at::Tensor centred = x.sub(mean.to(at::kFloat).view(shape));
    at::Tensor squares = centred.square().sum(dims, false, at::kDouble).mul(own);
    scope.group->sum({squares});
    const at::Tensor variance = squares.div(count);
    const at::Tensor scale = variance.add(eps).rsqrt().to(at::kFloat);
    at::Tensor output = centred.mul(scale.view(shape));
    if (weight.defined()) output = output.mul(weight.view(shape));
    if (bias.defined()) output = output.add(bias.view(shape));
    context->save_for_backward({input, weight, mean, scale, count});
    context->saved_data["counts"] = scope.counts;
    context->saved_data["has_bias"] = bias.defined();
    context->saved_data["group"] = reinterpret_cast<int64_t>(scope.group);
    context->mark_non_differentiable({mean, variance, count});
    return {output.to(input.scalar_type()), mean, variance, count};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const c10::impl::ExcludeDispatchKeyGuard below(kKey);
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &scale = saved[3],
                     &count = saved[4];
    const auto dims = all_but_channels(input), shape = by_channel(input);
    const double own = context->saved_data["counts"].toBool() ? 1 : 0;
    const at::Tensor gradient = gradients[0].to(at::kFloat);
    const at::Tensor normal =
        input.to(at::kFloat).sub(mean.to(at::kFloat).view(shape)).mul(scale.view(shape));
    const at::Tensor of_bias = gradient.sum(dims, false, at::kDouble),
                     of_weight = gradient.mul(normal).sum(dims, false, at::kDouble);
    at::Tensor sums = at::cat({of_bias, of_weight}).mul(own);
    reinterpret_cast<Group*>(context->saved_data["group"].toInt())->sum({sums});
    const int64_t channels = input.size(1);
    const auto share = [&](int64_t first) {
      return sums.narrow(0, first, channels).div(count).to(at::kFloat).view(shape);
    };
    at::Tensor factor = scale.view(shape);
    if (weight.defined()) factor = factor.mul(weight.view(shape));
    const at::Tensor of_input = gradient.sub(share(0)).sub(normal.mul(share(channels))).mul(factor);
    const bool has_bias = context->saved_data["has_bias"].toBool();
    return {of_input.to(input.scalar_type()),
            weight.defined() ? of_weight.to(weight.scalar_type()) : at::Tensor(),
            has_bias ? of_bias.to(at::kFloat) : at::Tensor(), at::Tensor()};
  }
};

at::Tensor batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias,
                      const std::optional<at::Tensor>& running_mean,
                      const std::optional<at::Tensor>& running_var, bool training, double momentum,
                      double eps, bool cudnn_enabled) {
  if (!training || t_scope.group == nullptr) {
    const c10::impl::ExcludeDispatchKeyGuard below(kKey);
    return at::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                          cudnn_enabled);
  }
  const auto all =
      Normalise::apply(input, weight.value_or(at::Tensor()), bias.value_or(at::Tensor()), eps);
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  const c10::AutoGradMode without_gradients(false);
  const at::Tensor &mean = all[1], &variance = all[2], &count = all[3];
  const auto follow = [momentum](const std::optional<at::Tensor>& running, const at::Tensor& now) {
    if (running && running->defined())
      running->mul_(1 - momentum).add_(now.to(running->scalar_type()), momentum);
  };
  follow(running_mean, mean);
  follow(running_var, variance.mul(count).div(count.sub(1)));
  return all[0];
}

/// Registers the kernel, and that all other operators pass the key by.
void register_kernels() {
  // For the life of the process: another thread may be in a scope when this one ends.
  static Immortal<c10::RegistrationHandleRAII> others(c10::Dispatcher::singleton().registerFallback(
      kKey, c10::KernelFunction::makeFallthrough(), "tare::parallel"));
  static_cast<void>(others);
  static Immortal<torch::Library> library(torch::Library::IMPL, "aten", kKey, __FILE__,
                                          uint32_t{__LINE__});
  static const bool norms = (library->impl("batch_norm", &batch_norm), true);
  static_cast<void>(norms);
}

}  // namespace

SyncBatchNormScope::SyncBatchNormScope(Group& group, bool counts)
    : include_((register_kernels(), c10::DispatchKeySet(kKey))) {
  t_scope = {&group, counts};
}

SyncBatchNormScope::~SyncBatchNormScope() { t_scope = {}; }

}  // namespace tare::parallel
