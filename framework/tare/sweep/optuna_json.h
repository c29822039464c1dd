// Settings as Optuna writes them. Internal.
#pragma once

#include <nlohmann/json.hpp>

#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// As choices and attributes: null, a bool, a number or text; lists and mappings as text.
[[nodiscard]] nlohmann::ordered_json scalar_json(const config::Node& node);
/// {"name": "CategoricalDistribution", "attributes": {...}}; Int or Float for ranges.
[[nodiscard]] nlohmann::ordered_json distribution_json(const Parameter& parameter);
/// The system attribute of a trial that waits: {key: value}.
[[nodiscard]] nlohmann::ordered_json fixed_params(const Settings& cell);
/// The index of a choice, or the number itself.
[[nodiscard]] double param_value(const Parameter& parameter, const config::Node& value);

}  // namespace tare::sweep
