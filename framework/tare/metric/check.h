// Checks that losses and metrics share.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tare {

/// "int64 [32, 10]".
[[nodiscard]] std::string describe(const at::Tensor& tensor);

/// Both have a batch dimension of the same size and lie on one device. Throws ShapeError,
/// DeviceError.
void check_batch_size(const std::string& where, const at::Tensor& output, const at::Tensor& target);
/// Target int64 [n, ...] for scores [n, classes, ...] with at least `least` classes. Throws
/// ShapeError.
void check_classes(const std::string& where, const at::Tensor& output, const at::Tensor& target,
                   int64_t least = 1);
/// Floating target of the output's shape. Throws ShapeError.
void check_same_shape(const std::string& where, const at::Tensor& output, const at::Tensor& target);

}  // namespace tare
