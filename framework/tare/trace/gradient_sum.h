// Sums of gradients inside a backward pass. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tare::plan {

/// Follows on this thread which nodes of a backward pass are at work. Returns the handle for
/// stop_watching_nodes().
[[nodiscard]] uint64_t watch_nodes();
void stop_watching_nodes(uint64_t handle);

/// Whether the host would add into this gradient. Where two paths meet, autograd adds the second
/// gradient into the first if nobody else holds that one; only for meta tensors it makes a third.
/// `gradient` is on a dispatcher's stack; the nodes of this thread are being watched.
[[nodiscard]] bool sums_in_place(const at::Tensor& gradient);

/// Whether `operand` is that of a subtraction or product inside the node of
/// binary_cross_entropy_with_logits, whose formula works in place unless a tensor is on the meta
/// device.
[[nodiscard]] bool is_loss_gradient(const at::Tensor& operand);

/// Whether the node of maximum() or minimum() is computed, whose formula fills in place unless a
/// tensor is on the meta device (LibTorch 2.15). Earlier versions of LibTorch always fill in place.
[[nodiscard]] bool is_gradient_of_extreme();

/// Whether `operand` is a tensor that the formula of any gradient has made and alone holds; not in
/// functions of the user's (torch::autograd::Function). `holders`: of the formula and the stack.
[[nodiscard]] bool is_own_of_formula(const at::Tensor& operand, size_t holders = 2);

}  // namespace tare::plan
