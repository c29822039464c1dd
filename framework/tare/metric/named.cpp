// What the metrics that have a name share.
#include "tare/metric/named.h"

#include <cmath>
#include <limits>

#include "tare/base/log.h"

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

double logit_of(double probability) { return std::log(probability / (1 - probability)); }

double no_value(const std::string& metric, const std::string& reason) {
  log::warning_once("the metric " + metric + " has no value: " + reason);
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tare
