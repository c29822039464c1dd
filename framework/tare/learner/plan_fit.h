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

/// Whether a fit with parts of `micro_batch` samples fits; what is allocated before it. Traced on
/// meta tensors. Throw plan::CannotTell, c10::Error.
[[nodiscard]] bool fits(const FitSubject& subject, const plan::Target& target, int64_t micro_batch);
[[nodiscard]] int64_t start_bytes(const FitSubject& subject, const plan::Target& target,
                                  int64_t micro_batch);

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
