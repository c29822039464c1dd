// The schedule of a phase before it is trained: a table of some steps, and a plot.
#pragma once

#include <string>
#include <vector>

#include "tare/base/terminal.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/report/run_files.h"

namespace tare {

/// Holds the schedule of a phase, at some steps and, for the plot, at more.
struct SchedulePreview {
  std::string phase{}, kind{};           ///< names of the phase and of the schedule of its rate
  ScheduleTable table{};                 ///< at about ten steps
  std::vector<double> steps{}, rates{};  ///< of the last layer group, at a hundred steps at most

  /// Returns the table, and the plot of the rate, in lines of at most `width` columns.
  [[nodiscard]] std::string str(size_t width = kAnyWidth) const;
};

/// Returns the schedule of phase number `phase` on a model with `groups` >= 1 layer groups.
[[nodiscard]] SchedulePreview preview_schedule(const RecipeOptions& recipe, size_t phase,
                                               const DataFacts& data, int64_t groups);

}  // namespace tare
