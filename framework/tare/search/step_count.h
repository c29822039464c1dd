// A number of steps as an option of pruners.
#pragma once

#include <cstdint>
#include <optional>

#include "tare/config/node.h"

namespace tare::search {

/// Holds a number of steps, at least 1, or `auto`. A step is one report of the metric, an epoch,
/// and counts from 1: a trial's report of step k was made after k epochs.
struct StepCount {
  std::optional<int64_t> steps{};  ///< unset: auto
};
void from_node(const config::Node& node, StepCount& value);
[[nodiscard]] config::Node to_node(const StepCount& value);

}  // namespace tare::search
