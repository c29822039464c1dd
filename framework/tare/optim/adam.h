// A step of AdamW on ATen's fused kernel, for the optimizers that take it for some parameters.
// Internal.
#pragma once

#include "tare/optim/fused.h"

namespace tare {

/// Holds the numbers of a step of AdamW.
struct AdamWStep {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  at::Tensor rate{};  ///< see ParameterGroup::rate
};

/// Describes the state of Adam and AdamW for a parameter.
[[nodiscard]] FusedState adam_state();
/// Steps the parameters of `lists`, whose state is adam_state(). Allocates nothing.
void step_adamw(const AdamWStep& step, const FusedLists& lists);

}  // namespace tare
