// Every combination of the parameters, as cells.
#pragma once

#include <vector>

#include "tare/search/search_options.h"
#include "tare/search/trial.h"

namespace tare::search {

inline constexpr size_t kMaxCells = 1'000'000;  ///< of a grid

/// Returns `cell` without the parameters whose conditions do not hold.
[[nodiscard]] Cell reduced(Cell cell, const SearchOptions& options);

/// Whether SearchOptions::exclude names the cell.
[[nodiscard]] bool excluded(const Cell& cell, const SearchOptions& options);

/// Returns every combination of the parameters, the first one slowest, without those that are
/// excluded, and each once where a condition removes a parameter. Throws ConfigError for a range
/// that cannot be counted, a space above kMaxCells combinations, and conditions on what is no
/// parameter.
[[nodiscard]] std::vector<Cell> grid(const SearchOptions& options);

}  // namespace tare::search
