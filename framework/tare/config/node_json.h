// A configuration tree as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tare/config/node.h"

namespace tare::config {

/// Returns the tree as JSON: numbers, true and false keep their values; every other scalar is text.
[[nodiscard]] nlohmann::json json_of(const Node& node);

}  // namespace tare::config
