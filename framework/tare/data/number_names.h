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

/// Returns "0", "1" and so on up to the number of the highest class.
[[nodiscard]] inline std::vector<std::string> number_names(int64_t highest) {
  std::vector<std::string> names;
  for (int64_t i = 0; i <= highest; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace tare
