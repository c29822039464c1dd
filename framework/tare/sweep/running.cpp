#include "tare/sweep/running.h"

#include <cmath>

namespace tare::sweep {

RunNow Running::now() const {
  const auto& values = reports.values();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - started;
  return {.name = trial.run_name,
          .epochs = static_cast<int64_t>(values.size()),
          .value = values.empty() ? std::nan("") : values.back(),
          .bytes = bytes,
          .seconds = time.count()};
}

bool Running::has_ended_for(search::PruneDecision asked, const ChildEnd& how) const {
  return verdict == asked && (how.was_stopped() || how.saved);
}

}  // namespace tare::sweep
