// Exchanges the hook that LibTorch calls once the gradient of a parameter is complete. Internal.
#pragma once

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace tare {

using GradientHook = torch::autograd::PostAccumulateGradHook;

/// Sets the hook of `parameter`, which is a leaf that requires a gradient; null sets none. Returns
/// the hook that `parameter` had before, or null; the caller puts it back with another call.
[[nodiscard]] inline std::unique_ptr<GradientHook> exchange_hook(
    const at::Tensor& parameter, std::unique_ptr<GradientHook> hook) {
  auto before = std::move(torch::autograd::impl::post_acc_grad_hooks(parameter));
  torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::move(hook));
  return before;
}

}  // namespace tare
