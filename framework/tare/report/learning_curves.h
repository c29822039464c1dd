// Learning curves: the metric of many runs by epoch, in one chart. Internal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tare/report/strands.h"
#include "tare/report/sweep_summary.h"

namespace tare::report {

/// Draws a line for each of `runs` with a finite value; grey where the run has none at its end.
/// Points that lie within half a pixel of a line are skipped, and where the chart would be larger
/// than `limit` bytes, points within one, two, four ... pixels. Returns "" without a line.
[[nodiscard]] std::string learning_curves(const SweepSummary& sweep,
                                          const std::vector<const SweepRun*>& runs,
                                          const Shading& shading, size_t limit);

}  // namespace tare::report
