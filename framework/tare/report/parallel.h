// Parallel coordinates: an axis for each parameter and one for the metric, a line for each run.
// Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/report/strands.h"
#include "tare/report/sweep_summary.h"

namespace tare::report {

/// Draws the axes one below the other, the metric's last, so that any number of them with names of
/// any length fits a narrow window. Numbers lie between the parameter's ends, which move for values
/// outside; choices lie at equal distances; a run without the parameter passes at the far left.
/// `runs` have drawable values; pruned runs are dashed. Returns "" without runs.
[[nodiscard]] std::string parallel_chart(const SweepSummary& sweep,
                                         const std::vector<const SweepRun*>& runs,
                                         const Shading& shading);

}  // namespace tare::report
