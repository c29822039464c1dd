// Says how runs stand.
#include "tare/sweep/progress.h"

#include <cmath>
#include <iterator>

namespace tare::sweep {

RunNow ActiveRun::now() const {
  const auto& values = reports.values();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - started;
  return {.name = trial.run_name,
          .epochs = static_cast<int64_t>(values.size()),
          .value = values.empty() ? std::nan("") : values.back(),
          .bytes = bytes * std::ssize(devices),
          .seconds = time.count()};
}

bool ActiveRun::ended_because_of(search::PruneDecision asked, const launch::ChildEnd& how) const {
  return decision == asked && (how.was_stopped() || how.saved);
}

}  // namespace tare::sweep
