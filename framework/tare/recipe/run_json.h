// The parts of a run's report as JSON; shared by this room's sources only.
#pragma once

#include <nlohmann/json.hpp>

#include "tare/recipe/run.h"

namespace tare {

[[nodiscard]] nlohmann::ordered_json phase_to_json(const PhaseReport& phase);
/// What phase_to_json() gave. Throws nlohmann::json::exception for what it did not give.
[[nodiscard]] PhaseReport phase_from_json(const nlohmann::ordered_json& value);

}  // namespace tare
