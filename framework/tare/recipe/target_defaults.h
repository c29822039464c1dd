// The loss and the metrics of a recipe that names neither. Internal.
#pragma once

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Sets the loss that the file of the recipe does not give, and the metrics likewise, where the
/// targets of `data` are not classes: mse and mae for numbers, bce_with_logits and f1 for labels of
/// which a sample may have several. A given loss of numbers gets mae.
/// Logs what it sets. Changes nothing of a recipe made in code, and nothing for data of several
/// targets. Sets RecipeOptions::targets_known. Throws ConfigError for a watched figure that a run
/// with these targets does not have.
void set_target_defaults(RecipeOptions& recipe, const DataFacts& data);

}  // namespace tare
