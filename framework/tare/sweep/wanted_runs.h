// The runs that a sweep asks for. Internal.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "tare/sweep/progress.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

struct WantedRuns {
  std::vector<search::Cell> cells{};
  std::vector<std::string> identities{};  ///< of each cell; see Identity
  std::string recipe{};                   ///< identity of the recipe with SweepOptions::set alone
};

/// Returns the cells of a grid, at most as many as `trials`; where they are drawn, those that have
/// been drawn for this recipe. Throws as grid() and Identity do.
[[nodiscard]] WantedRuns wanted_runs(const SweepOptions& sweep, const std::vector<Trial>& known);

/// Sets Trial::is_earlier where the recipe, or SweepOptions::set, has changed since the trial was
/// made: its settings are then those of another configuration. A trial of a run that the grid wants
/// gets the settings that the run has there. Throws IoError and ConfigError for
/// the recipe's file.
void mark_earlier(const SweepOptions& sweep, std::vector<Trial>& trials);

/// Counts the latest trial of each wanted run.
[[nodiscard]] RunCounts count_runs(const std::vector<Trial>& trials,
                                   const std::unordered_set<std::string>& identities);

}  // namespace tare::sweep
