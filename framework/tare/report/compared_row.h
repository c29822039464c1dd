// One line of a comparison of runs, and where the defaults of its settings come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tare/config/node.h"

namespace tare::report {

/// Is the text of a setting or a figure that a run does not have.
inline constexpr const char* kNoSetting = "-";

/// Returns the options that a choice of a recipe has beside the keys of all kinds, each with its
/// default. `choice`: the key of the recipe, such as "optimizer"; `kind`: the name that the recipe
/// gives there. An empty mapping: there are none, or the kind is unknown.
using OwnDefaults = std::function<config::Node(const std::string& choice, const std::string& kind)>;

/// Holds one line of a comparison: a setting or a figure of each run.
struct ComparedRow {
  std::string name{};                ///< "optimizer.kind", "valid accuracy"
  std::vector<std::string> texts{};  ///< for people, one for each run; "-": the run has none
  std::vector<double> values{};      ///< of a figure, in its unit; NaN: none. Empty: a setting
};

}  // namespace tare::report
