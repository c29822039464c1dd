// Refuses operators that a card cannot compute by kernels that repeat their bits. Internal.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tare::plan {

/// Whether kernels have to repeat their bits; that LibTorch only warns is not enough.
[[nodiscard]] bool repeats_bits();

/// Throws ConfigError in a recording for a card, where only kernels that repeat their bits are
/// allowed (KernelOptions::deterministic), for an operator for which LibTorch has none.
/// `arguments`: the operator's, at the end of the stack.
void require_deterministic(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

}  // namespace tare::plan
