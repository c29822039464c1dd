// Checks the file of weights that a recipe starts from, and warns of what it does not take from a
// bundle. Internal.
#pragma once

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Warns where `model.weights` is a bundle whose transforms or labels are not those of the recipe's
/// data: the weights alone are taken from the file. Throws as open_bundle().
void warn_of_weights_bundle(const RecipeOptions& recipe, const DataFacts& data);

/// Throws ConfigError where `model.weights` was trained on the rows of a table with other columns,
/// or other categories in them, than the data of the recipe. Throws as open_bundle().
void check_weight_columns(const RecipeOptions& recipe, const DataFacts& data);

/// Throws what the run would throw for the file of `model.weights`: FormatError for a file that
/// does not fit the model or a bundle that does not verify; ConfigError for a folder; IoError. A
/// model that reads values while it is made is checked by the run alone. `data`: of the recipe's
/// own data.
void check_weights(const RecipeOptions& recipe, const DataFacts& data);

}  // namespace tare
