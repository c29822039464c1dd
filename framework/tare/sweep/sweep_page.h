// The HTML report of a sweep, from its store.
#pragma once

#include "tare/report/sweep_summary.h"
#include "tare/sweep/store_read.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Returns what report::sweep_page() draws: the runs that have not been dropped; those of an
/// earlier version of the recipe (mark_earlier()) are listed alone. A value that is no longer among
/// a parameter's choices counts as not set.
[[nodiscard]] report::SweepSummary summary_of(const SweepOptions& sweep,
                                              const StoreContents& contents);

}  // namespace tare::sweep
