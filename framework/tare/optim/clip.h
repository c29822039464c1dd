// Scales gradients whose norm is known already, such as that over several ranks. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tare/optim/optimizer.h"

namespace tare {

/// Scales the gradients of all groups, whose joint 2-norm is `norm`, a scalar on their device, so
/// that it is at most `max_norm` > 0; see clip_grad_norm().
void scale_to_norm(const std::vector<ParameterGroup>& groups, const at::Tensor& norm,
                   double max_norm);

}  // namespace tare
