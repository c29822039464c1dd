// The settings in which the recipes of several runs differ.
#pragma once

#include <string>
#include <vector>

#include "tare/report/compared_row.h"

namespace tare::report {

/// Returns the settings in which recipes differ, sorted by their paths. A row is one value of each
/// recipe: a list, or a value that is a mapping in some recipes only, is in flow form in all of
/// them. Lists whose items have the same keys in every recipe have a row for each value in them.
/// The name and the folder of a run count as no setting. `recipes`: texts, empty for a run without
/// a recipe; `defaults` and `own_defaults`: as compare_runs() takes them.
[[nodiscard]] std::vector<ComparedRow> compared_settings(const std::vector<std::string>& recipes,
                                                         const std::string& defaults,
                                                         const OwnDefaults& own_defaults);

}  // namespace tare::report
