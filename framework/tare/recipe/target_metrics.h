// The figures of each of several numbers that a recipe predicts. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/recipe/recipe.h"

namespace tare {

/// Returns the metrics of a phase: those of the recipe and, behind them, each of mae, mse, rmse and
/// r2 for each of `data.targets` alone, where there are from 2 to 20 and all phases have the same.
[[nodiscard]] std::vector<Metric> metrics_of(const RecipeOptions& recipe);

/// Returns the names of metrics_of(), which are columns of the epochs table.
[[nodiscard]] std::vector<std::string> metric_columns(const RecipeOptions& recipe);

/// Returns the columns that a callback may watch: those of metric_columns() and, before the targets
/// of the data are known, the metrics that set_target_defaults() may choose.
[[nodiscard]] std::vector<std::string> watched_columns(const RecipeOptions& recipe);

/// Warns where the numbers of one target are so much larger than those of another one that the loss
/// is nearly that of the one alone. `data`: of phase number `phase`.
void warn_of_units(const RecipeOptions& recipe, size_t phase, const Splits& data);

}  // namespace tare
