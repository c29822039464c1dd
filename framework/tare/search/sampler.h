// The next run of a sweep that is not a grid.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tare/search/search_options.h"
#include "tare/search/trial.h"

namespace tare::search {

/// Whether the method draws cells one by one; else the runs are those of grid().
[[nodiscard]] bool draws(const SearchOptions& options);

/// Returns the cell of trial `number`, by the sampler that `options` name. A pure function: the
/// same trials seen give the same cell, in a resumed sweep as well. `history` may hold the trial
/// itself, which is not looked at. Parameters whose conditions do not hold are skipped;
/// combinations that are excluded are drawn again. Where all parameters have countable values, so
/// is what `history` has in any state, and when draws keep repeating, the grid's first cell that it
/// has not is taken; nullopt when it has all of them: the sweep is complete. Throws ConfigError for
/// a method that draws nothing, and if the exclusions leave nothing that can be drawn; StateError
/// for a sampler that draws what no parameter allows.
[[nodiscard]] std::optional<Cell> sample(const SearchOptions& options,
                                         const std::vector<SeenTrial>& history, int64_t number,
                                         uint64_t seed);

}  // namespace tare::search
