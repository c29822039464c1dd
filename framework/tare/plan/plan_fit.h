// Figures and advice for a fit, from its trace. Internal.
#pragma once

#include "tare/plan/fit_trace.h"
#include "tare/plan/plan.h"

namespace tare {

/// Returns the plan of a fit for which there are no figures yet.
[[nodiscard]] MemoryPlan plan_for(const plan::Target& target, int64_t batch);

/// Returns the plan of a fit that cannot be predicted.
[[nodiscard]] MemoryPlan unknown_plan(const plan::Target& target, int64_t batch,
                                      std::string reason);

/// Whether a fit with parts of `micro_batch` samples fits; what is allocated before it. Traced on
/// meta tensors. Throw plan::NotPlannable, c10::Error.
[[nodiscard]] bool fits(const PlanRequest& request, const plan::Target& target,
                        int64_t micro_batch);
[[nodiscard]] int64_t start_bytes(const PlanRequest& request, const plan::Target& target,
                                  int64_t micro_batch);

/// Returns the largest batch that fits, at most the training split; 0: none is known to.
[[nodiscard]] int64_t largest_batch(const PlanRequest& request, const plan::Target& target);

/// Returns the plan of a fit with its own batch, whose blocks to recompute are chosen; see
/// plan_adapted().
[[nodiscard]] MemoryPlan plan_fit(const PlanRequest& request, const plan::Target& target,
                                  bool advice);

/// Returns the largest micro-batch with which the fit takes at most `available_bytes` above what is
/// there at its beginning; unset: meta tensors do not predict it, or not why one of `failed`
/// samples did not fit.
[[nodiscard]] std::optional<int64_t> planned_micro_batch(const PlanRequest& request,
                                                         plan::Target target,
                                                         int64_t available_bytes, int64_t failed);

}  // namespace tare
