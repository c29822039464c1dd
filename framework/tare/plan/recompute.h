// Chooses the blocks of LearnerOptions::recompute auto. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/plan/fit_trace.h"

namespace tare {

/// Sets LearnerOptions::recompute, which is {"auto"}, to the blocks that cost the least time for a
/// byte saved, as few as it takes to fit with the micro-batch of the options or a whole batch; to
/// none if the fit cannot be predicted, and to all if even these do not fit. With another precision
/// than fp32 the plan is that of fp32, a bound. `available_bytes`: what the fit may take above its
/// start; unset: all that the target has.
/// Returns what recomputable() returns for the request where it was asked, else nothing.
std::vector<std::string> choose_recompute(PlanRequest& request, plan::Target target,
                                          std::optional<int64_t> available_bytes = {});

/// Returns the blocks of the request's model that LearnerOptions::recompute auto may choose, by the
/// time that they cost for a byte saved; in the model's order if that cannot be measured. Does
/// two steps of four samples on this host.
[[nodiscard]] std::vector<std::string> recomputable(const PlanRequest& request);

}  // namespace tare
