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

/// Returns the next fit, on a machine; without `model` if the model is not from the registry.
/// `stateful`: the parameters for which the optimizer has state before the fit. Reads some samples.
[[nodiscard]] PlanRequest request_of(const LearnerState& state, const ParameterNames& stateful,
                                     plan::Machine machine);

/// Returns a function for the search of a fit that starts now. It gives the largest micro-batch
/// that fits by a plan where one of `failed` samples did not; unset: a plan does not predict it, or
/// not why it failed. The function changes nothing, and `state` outlives it.
[[nodiscard]] std::function<std::optional<int64_t>(int64_t failed)> suggestion_by_plan(
    const LearnerState& state);

/// Chooses the blocks that a fit recomputes which starts now with LearnerOptions::recompute
/// {"auto"}. Leaves generators as they are.
void choose_recompute(LearnerState& state);

}  // namespace tare
