// Plans the next fit of a Learner from what the Learner is now. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

#include "tare/plan/fit_trace.h"
#include "tare/train/learner_state.h"

namespace tare {

using ParameterNames = std::unordered_set<std::string>;

/// Returns the parameters for which the optimizer has state now.
[[nodiscard]] ParameterNames stateful_parameters(const LearnerState& state);

/// Returns the next fit, on a machine; without `model` for one that is not from the registry.
/// `stateful`: the parameters for which the optimizer has state before the fit. Reads some samples.
[[nodiscard]] PlanRequest request_of(const LearnerState& state, const ParameterNames& stateful,
                                     plan::Machine machine);

/// For the search of a fit that starts now: the largest micro-batch with which the fit fits by a
/// plan, given that one of `failed` samples did not; unset: a plan does not predict it, or not why
/// it failed. Changes nothing. `state` outlives the function.
[[nodiscard]] std::function<std::optional<int64_t>(int64_t failed)> suggestion_by_plan(
    const LearnerState& state);

/// Chooses the blocks that a fit recomputes which starts now with LearnerOptions::recompute
/// {"auto"}. Leaves generators as they are.
void choose_recompute(LearnerState& state);

}  // namespace tare
