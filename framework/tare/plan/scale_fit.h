// scale_fit(): the model of a planned fit on many devices. Internal.
#pragma once

#include "tare/plan/fit_trace.h"
#include "tare/plan/plan.h"
#include "tare/plan/scale_plan.h"

namespace tare {

/// Returns the model for the ranks of the request, from its plan, from further traces, and on the
/// host from a product of matrices that is timed.
[[nodiscard]] plan::ScalePlan scale_fit(PlanRequest request, const plan::Target& target,
                                        const MemoryPlan& planned,
                                        const plan::ScaleOptions& options);

}  // namespace tare
