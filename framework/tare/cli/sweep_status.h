// Prints what a sweep has done so far, for `tare sweep status` and the end of a sweep.
#pragma once

#include <string>
#include <vector>

#include "tare/sweep/store_read.h"
#include "tare/sweep/sweep_options.h"

namespace tare::cli {

/// Reads the store of a sweep, with the last attempt of each run. Runs of another recipe or of
/// other settings are marked. Throws ConfigError where nothing has run yet.
[[nodiscard]] sweep::StoreContents contents_of(const sweep::SweepOptions& sweep);

/// Returns the complete run with the best value, with its settings; empty: none is complete.
[[nodiscard]] std::string best_text(const sweep::SweepOptions& sweep,
                                    const std::vector<sweep::Trial>& trials);

/// Returns the mean and the standard deviation of the metric over the complete folds of a
/// cross-validation, a line for each combination of the other settings, best first; empty where
/// `data.fold` is no parameter of the sweep, or fewer than two folds are complete.
[[nodiscard]] std::string fold_text(const sweep::SweepOptions& sweep,
                                    const std::vector<sweep::Trial>& trials);

/// Returns the note of a headline whose figures come from generated data, else "".
[[nodiscard]] std::string generated_text(const sweep::SweepOptions& sweep,
                                         const std::vector<sweep::Trial>& trials);

/// Prints whether the sweep is running, its best run and all of its runs: a table on a terminal,
/// else a line for each.
void print_status(const sweep::SweepOptions& sweep);

}  // namespace tare::cli
