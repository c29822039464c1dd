// The number of weights of a model, for comparison with the figure that its authors name.
#pragma once

#include <cstdint>

#include "tare/model/model.h"

namespace tare::testing {

inline int64_t parameter_count(const Model& model) {
  int64_t all = 0;
  for (const auto& p : model.parameters()) all += p.tensor.numel();
  return all;
}

}  // namespace tare::testing
