// Arrays of NumPy as labels of classes. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "tare/data/number_names.h"

namespace tare {

/// Returns an array of whole numbers [samples, ...] as int64: [samples] where a sample has one.
[[nodiscard]] inline at::Tensor whole_targets(const at::Tensor& array) {
  const bool flat = array.dim() == 2 && array.size(1) == 1;
  return (flat ? array.view({-1}) : array).to(at::kLong);
}

/// Whether targets are labels of classes, int64 [samples], which are not too high to be counted.
[[nodiscard]] inline bool are_classes(const at::Tensor& target) {
  constexpr int64_t kMost = 100'000;  // a higher label is hardly a class
  return !target.is_floating_point() && target.dim() == 1 && highest_class(target) < kMost;
}

/// Returns the warning of the data set npy about targets, to continue the path of their file;
/// empty: there is none.
[[nodiscard]] inline std::string label_warning(const at::Tensor& target) {
  return are_classes(target) ? lacks_class_0(lowest_class(target)) : std::string();
}

}  // namespace tare
