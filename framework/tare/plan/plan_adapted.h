// plan_adapted(): the plan of a fit as it will be run. Internal.
#pragma once

#include "tare/plan/fit_trace.h"
#include "tare/plan/plan.h"

namespace tare {

/// Returns the plan of a fit with its own batch: blocks chosen, figures, advice if wanted,
/// micro-batches if the batch does not fit. A fit that cannot be predicted has method "none".
[[nodiscard]] MemoryPlan plan_adapted(PlanRequest request, const plan::Target& target, bool advice);

}  // namespace tare
