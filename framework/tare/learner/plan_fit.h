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

/// For a fit with LearnerOptions::recompute {"auto"}: sets it to the blocks that cost the least
/// time for a byte saved, as few as it takes to fit with the micro-batch of the options or a whole
/// batch; to none if it cannot be told, and to all if even these do not fit. With another precision
/// than fp32 the plan is that of fp32, a bound. `room_bytes`: what the fit may take above its
/// start; unset: all that the target has.
void choose_recompute(FitSubject& subject, plan::Target target,
                      std::optional<int64_t> room_bytes = {});

/// Completes the plan of a fit whose batches do not fit, but may be done in micro-batches.
void plan_micro_batches(MemoryPlan& plan, const FitSubject& subject, const plan::Target& target);

/// All of that: blocks chosen, figures, advice if wanted, micro-batches if the batch does not fit.
[[nodiscard]] MemoryPlan plan_adapted(FitSubject subject, const plan::Target& target, bool advice);

/// The largest micro-batch with which the fit takes at most `room_bytes` above what is there at its
/// beginning; unset: meta tensors cannot tell, or not why one of `failed` samples did not fit.
[[nodiscard]] std::optional<int64_t> planned_micro_batch(const FitSubject& subject,
                                                         plan::Target target, int64_t room_bytes,
                                                         int64_t failed);

}  // namespace tare
