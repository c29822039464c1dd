// The registry of metrics, and what those with a name share.
#include "tare/metric/named.h"

#include <cmath>
#include <limits>

#include "tare/base/log.h"

namespace tare {

double logit_of(double probability) { return std::log(probability / (1 - probability)); }

double no_value(const std::string& metric, const std::string& reason) {
  log::warning_once("the metric " + metric + " has no value: " + reason);
  return std::numeric_limits<double>::quiet_NaN();
}

namespace metrics {

Registry& registry() {
  static Registry all("metric", [](Registry& entries) {
    add_class_metrics(entries);
    add_count_metrics(entries);
    add_rank_metrics(entries);
    add_value_metrics(entries);
  });
  return all;
}

}  // namespace metrics
}  // namespace tare
