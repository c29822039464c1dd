// Values of parameters as text: on one line of YAML, and as Python writes them.
#pragma once

#include <string>

#include "tare/config/node.h"
#include "tare/search/space.h"

namespace tare::search {

using config::flow_text;

/// Returns the value as Python's str() writes it: 1.0, 1e-05, 0.0001, True, None. Folders of runs
/// have such values in their names.
[[nodiscard]] std::string python_text(const config::Node& value);

/// Returns "lr=0.01 batch=32" for a cell, as above.
[[nodiscard]] std::string python_text(const Settings& settings);

}  // namespace tare::search
