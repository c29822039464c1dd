// Warns of what a recipe does not take from the bundle of its weights. Internal.
#pragma once

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Warns where `model.weights` is a bundle whose transforms or labels are not those of the recipe's
/// data: the weights alone are taken from the file. Throws as open_bundle().
void warn_of_weights_bundle(const RecipeOptions& recipe, const DataFacts& data);

}  // namespace tare
