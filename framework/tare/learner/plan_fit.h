// plan_fit(): figures and advice for a fit. Internal.
#pragma once

#include "tare/learner/fit_trace.h"
#include "tare/learner/plan.h"

namespace tare {

/// The plan of a fit that cannot be told.
[[nodiscard]] MemoryPlan unknown_plan(const plan::Target& target, int64_t batch,
                                      std::string reason);

/// The plan of a fit with its own batch. A fit that cannot be told has method "none".
[[nodiscard]] MemoryPlan plan_fit(const FitSubject& subject, const plan::Target& target,
                                  bool advice);

}  // namespace tare
