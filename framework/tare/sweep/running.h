// A run that is on. Internal.
#pragma once

#include <chrono>
#include <memory>

#include "tare/search/pruner.h"
#include "tare/sweep/child.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/progress.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

struct Running {
  Trial trial{};
  std::unique_ptr<Process> process{};
  size_t device = 0;  ///< its room
  int64_t bytes = 0;  ///< reserved
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  Reports reports{};
  search::PruneDecision verdict =
      search::PruneDecision::proceed;  ///< else it has been asked to save and end

  [[nodiscard]] RunNow now() const;
  /// Whether the process ended for the sake of that verdict.
  [[nodiscard]] bool has_ended_for(search::PruneDecision asked, const ChildEnd& how) const;
};

}  // namespace tare::sweep
