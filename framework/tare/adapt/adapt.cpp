// Checks the ranges and dimensions that adaptive calls are given.
#include "tare/adapt/adapt.h"

#include <string>

#include "tare/base/error.h"

namespace tare::adapt {
namespace detail {

void check_range(int64_t start, int64_t end) {
  if (end >= start) return;
  throw ConfigError("adapt.range", "end must be >= start " + std::to_string(start) + ", got " +
                                       std::to_string(end));
}

int64_t checked_dim(const at::Tensor& tensor, int64_t dim) {
  const int64_t rank = tensor.defined() ? tensor.dim() : 0;
  if (dim >= -rank && dim < rank) return dim < 0 ? dim + rank : dim;
  throw ShapeError("adapt.chunked", "a tensor with dimension " + std::to_string(dim),
                   tensor.defined() ? std::to_string(rank) + " dimensions" : "no tensor");
}

}  // namespace detail
}  // namespace tare::adapt
