// The parts of a run's report as JSON. Internal.
#pragma once

#include <nlohmann/json.hpp>

#include "tare/recipe/run_report.h"

namespace tare {

[[nodiscard]] nlohmann::ordered_json phase_to_json(const PhaseReport& phase);
/// The inverse of phase_to_json(). Throws nlohmann::json::exception for anything else.
[[nodiscard]] PhaseReport phase_from_json(const nlohmann::ordered_json& value);

}  // namespace tare
