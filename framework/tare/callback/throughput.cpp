// Measures the rate of training.
#include "tare/callback/throughput.h"

#include <limits>

#include "tare/callback/registry.h"

namespace tare {

Action Throughput::before_epoch(FitContext&) {
  seconds_.before_epoch();
  return Action::proceed;
}

Action Throughput::before_validate(FitContext& context) {
  seconds_.before_validate(context);
  return Action::proceed;
}

Action Throughput::after_epoch(FitContext& context) {
  const auto rate = seconds_.samples_per_s(context);
  context.row.metrics.push_back(
      {"samples_per_s", rate.value_or(std::numeric_limits<double>::quiet_NaN())});
  return Action::proceed;
}

namespace callbacks {
void add_throughput(Registry& all) {
  all.add("throughput", "adds the samples by the second to the table of the epochs",
          [] { return std::make_shared<Throughput>(); });
}
}  // namespace callbacks

}  // namespace tare
