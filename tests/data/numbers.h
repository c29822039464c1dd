// A data set whose sample i has the input i and the target i.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "tare/data/tensor_dataset.h"

namespace tare::testing {

inline DatasetPtr numbers(int64_t count) {
  return tensor_dataset(at::arange(count).view({count, 1}), at::arange(count));
}

}  // namespace tare::testing
