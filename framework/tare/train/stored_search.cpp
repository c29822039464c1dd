// Writes the points of a search as a tensor, and reads them.
#include "tare/train/stored_search.h"

#include "tare/base/error.h"
#include "tare/train/row_table.h"

namespace tare {

constexpr int64_t kColumns = 3;

at::Tensor tensor_of(const std::vector<LrFindPoint>& points) {
  at::Tensor tensor = unaccounted({static_cast<int64_t>(points.size()), kColumns}, at::kDouble);
  auto* value = tensor.mutable_data_ptr<double>();
  for (const LrFindPoint& point : points)
    for (const double figure : {point.lr, point.loss, point.smoothed}) *value++ = figure;
  return tensor;
}

std::vector<LrFindPoint> points_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.scalar_type() != at::kDouble || tensor.dim() != 2 ||
      tensor.size(1) != kColumns || !tensor.is_contiguous())
    throw ConfigError("learner.load", "is no table of a search for a rate");
  std::vector<LrFindPoint> points;
  const auto* value = tensor.const_data_ptr<double>();
  for (int64_t i = 0; i < tensor.size(0); ++i, value += kColumns)
    points.push_back({.lr = value[0], .loss = value[1], .smoothed = value[2]});
  return points;
}

}  // namespace tare
