// Sums over batches, divided by what was counted.
#include "tare/metric/mean_metric.h"

#include <limits>

namespace tare {

void MeanMetric::update(const at::Tensor& output, const at::Tensor& target) {
  Part more = part(output, target);
  add(sum_, more.sum);
  if (more.counted.defined()) add(counted_, more.counted);
  count_ += more.count;
}

void MeanMetric::merge(const StatefulMetric& other) {
  StatefulMetric::merge(other);
  count_ += static_cast<const MeanMetric&>(other).count_;
}

double MeanMetric::value() const {
  const double count = counted_.defined() ? number(counted_) : count_;
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return finish(number(sum_) / count);
}

}  // namespace tare
