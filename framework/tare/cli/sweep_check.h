// Checks the settings of a sweep against its recipe before anything runs.
#pragma once

#include "tare/recipe/recipe.h"
#include "tare/sweep/sweep_options.h"

namespace tare {

/// Checks the metric and every value of `set` and `parameters` against the recipe; of a range both
/// ends. For a value that the recipe accepts in no combination, throws the ConfigError that a run
/// with the value would throw, with the key and the place that the value has in the sweep's own
/// file. A combination whose values the recipe refuses only together is no error here: its run
/// fails, and others are run. Throws IoError and ConfigError for the recipe itself.
void check_sweep(const sweep::SweepOptions& sweep);

/// Checks the values against the data and the model, such as a batch that is larger than
/// the training split. Makes tensors, so Tare must have been started. Reads each data set once,
/// without the network. Warns of each combination it has tried whose values are refused only
/// together. Throws as check_sweep().
void check_sweep_with_data(const sweep::SweepOptions& sweep);

/// Returns the recipe with the settings that all runs of the sweep share and, where the recipe
/// refuses these by themselves, with a combination that makes them valid. Throws ConfigError at the
/// place of a setting that is valid in no combination.
[[nodiscard]] RecipeOptions shared_recipe(const sweep::SweepOptions& sweep);

}  // namespace tare
