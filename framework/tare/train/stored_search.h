// The search for a rate that a checkpoint holds: its points as a tensor. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tare/optim/lr_find.h"

namespace tare {

/// Returns rate, loss and smoothed loss of each point, float64 [points, 3], in memory that is not
/// counted, so that a save takes no more of a budget than its plan predicts.
[[nodiscard]] at::Tensor tensor_of(const std::vector<LrFindPoint>& points);
/// Returns the inverse of tensor_of(). Throws ConfigError for a tensor of another shape or dtype.
[[nodiscard]] std::vector<LrFindPoint> points_of(const at::Tensor& tensor);

}  // namespace tare
