// Lists the kinds of optimizers and schedules with the options that each takes.
#pragma once

#include <vector>

#include "tare/config/registry.h"

namespace tare {

namespace optimizers {
/// Returns the description of each kind with the fields of OptimizerOptions that it takes and its
/// defaults for them, sorted by name. Options of its own are in `options`, if it has any.
[[nodiscard]] std::vector<config::EntryInfo> infos();
}  // namespace optimizers

namespace schedules {
/// Returns the description of each kind with the fields of Schedule that it takes, sorted by name.
/// The fields of OneCycle are those of the kind `one_cycle`.
[[nodiscard]] std::vector<config::EntryInfo> infos();
}  // namespace schedules

}  // namespace tare
