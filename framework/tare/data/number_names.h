// Names of classes that data count from 0. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tare {

/// Returns the highest class of labels, contiguous int64 on the host; -1: there is none.
[[nodiscard]] inline int64_t highest_class(const at::Tensor& labels) {
  const int64_t* label = labels.const_data_ptr<int64_t>();
  return labels.numel() == 0
             ? -1
             : std::max<int64_t>(-1, *std::max_element(label, label + labels.numel()));
}

/// Returns the lowest class of labels, contiguous int64 on the host, without those below 0, which a
/// loss ignores; -1: there is none.
[[nodiscard]] inline int64_t lowest_class(const at::Tensor& labels) {
  const int64_t* label = labels.const_data_ptr<int64_t>();
  int64_t lowest = -1;
  for (int64_t i = 0; i < labels.numel(); ++i)
    if (label[i] >= 0 && (lowest < 0 || label[i] < lowest)) lowest = label[i];
  return lowest;
}

/// Returns a warning of labels that lack class 0, to continue the path of their file; empty: they
/// have it, or there are none. `lowest`: their lowest class.
[[nodiscard]] inline std::string lacks_class_0(int64_t lowest) {
  if (lowest <= 0) return {};
  const std::string first = std::to_string(lowest);
  return "has no sample of class 0, and its lowest label is " + first +
         ": labels count the classes from 0, so subtract " + first +
         " from all of them if these count from " + first;
}

/// Returns "0", "1" and so on up to the number of the highest class.
[[nodiscard]] inline std::vector<std::string> number_names(int64_t highest) {
  std::vector<std::string> names;
  for (int64_t i = 0; i <= highest; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace tare
