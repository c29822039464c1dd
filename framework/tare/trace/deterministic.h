// Refuses operators that a card cannot compute by kernels that repeat their bits. Internal.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tare::plan {

/// Throws ConfigError in a recording for a card, where only kernels that repeat their bits are
/// allowed (KernelOptions::deterministic), for an operator for which LibTorch has none.
/// `arguments`: the operator's, at the end of the stack.
void require_deterministic(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

}  // namespace tare::plan
