// Settings as Optuna writes them. Internal.
#pragma once

#include <nlohmann/json.hpp>

#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// As choices and attributes: null, a bool, a number or text; lists and mappings as text.
[[nodiscard]] nlohmann::ordered_json scalar_json(const config::Node& node);
/// {"name": "FloatDistribution", "attributes": {...}}, or Int.
[[nodiscard]] nlohmann::ordered_json range_json(const search::Range& range);
/// The system attribute of a trial that waits: {key: value}.
[[nodiscard]] nlohmann::ordered_json fixed_params(const search::Settings& cell);
/// One line of UTF-8; other bytes become U+FFFD.
[[nodiscard]] std::string text_of(const nlohmann::ordered_json& json);

}  // namespace tare::sweep
