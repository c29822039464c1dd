// The report of a sweep: its runs compared, as one HTML page that needs nothing else.
#pragma once

#include <cstddef>
#include <string>

#include "tare/report/sweep_summary.h"

namespace tare::report {

/// Runs that have a line in a chart; of more, the best, the worst, and as many evenly by rank.
inline constexpr size_t kSweepLines = 1000;
/// Bounds the number of parameters that are shown.
inline constexpr size_t kSweepParameters = 64;

/// Returns the page: what became of the runs, the best value so far by run, parallel coordinates of
/// parameters and metric, the parameters' importance, learning curves, and a table of all runs. It
/// is at most kMaxPageBytes large: 1,000 runs of 100 epochs and 8 parameters fit whole; for more,
/// curves are thinned out, fewer runs have a line and the table is cut, each with a note at its
/// place. Values that are not finite are listed, not drawn. The page holds no script and no
/// reference, so opening it asks no network. A pure function; throws nothing of its own.
[[nodiscard]] std::string sweep_page(const SweepSummary& sweep);

}  // namespace tare::report
