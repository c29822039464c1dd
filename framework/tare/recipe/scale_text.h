// Writes the model of a phase on many devices as text and as JSON. Internal.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tare/plan/scale_plan.h"

namespace tare {

/// Prints for each phase a table with a row for each strategy, and below them what is known exactly
/// and what is estimated; within the terminal's width if `out` is std::cout on one.
void print(std::ostream& out, const std::vector<plan::ScalePlan>& scales);
/// Returns `scale` of a phase, see to_json() of recipe_plan.h.
[[nodiscard]] nlohmann::ordered_json to_json(const plan::ScalePlan& scale);

}  // namespace tare
