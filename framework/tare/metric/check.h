// Checks of outputs and targets, for losses and metrics. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tare {

/// Returns "int64 [32, 10]".
[[nodiscard]] std::string describe(const at::Tensor& tensor);

/// Checks that both have a batch dimension of the same size and are on one device. Throws
/// ShapeError, DeviceError.
void check_batch_size(const std::string& where, const at::Tensor& output, const at::Tensor& target);
/// Checks for scores [n, classes, ...] with at least `least` classes and a target int64 [n, ...].
/// Throws ShapeError.
void check_classes(const std::string& where, const at::Tensor& output, const at::Tensor& target,
                   int64_t least = 1);
/// Whether a model has one output for two classes: a score [n, 1] for class labels int64 [n], above
/// 0 for class 1.
[[nodiscard]] bool is_one_score(const at::Tensor& output, const at::Tensor& target);
/// Returns the scores of both classes, [n, 2], of which the first is 0.
[[nodiscard]] at::Tensor two_scores(const at::Tensor& score);
/// Checks for an output of at most so many dimensions. Throws ShapeError.
void check_dimensions(const std::string& where, const at::Tensor& output, int64_t most);
/// Checks for a floating target of the output's shape. Throws ShapeError.
void check_same_shape(const std::string& where, const at::Tensor& output, const at::Tensor& target);

}  // namespace tare
