// Counts the class weights that a recipe leaves to its data. Internal.
#pragma once

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Whether the recipe has `class_weights: balanced`, without numbers yet.
[[nodiscard]] bool has_balanced_weights(const RecipeOptions& recipe);

/// Puts a number for each class in place of `class_weights: balanced`, as scikit-learn does: the
/// samples of the training split, before a limit, divided by the classes times the samples of the
/// class. Does nothing for another loss. `data`: of the recipe's own data. Throws ConfigError for
/// data without class labels, and for a class without a sample.
void count_class_weights(RecipeOptions& recipe, const DataFacts& data);

/// Warns where the data of phase number `phase` would give a class a weight that is far from the
/// one that the recipe's own data give it. `given`: the recipe before count_class_weights().
void warn_of_other_weights(const RecipeOptions& given, size_t phase, const DataFacts& own,
                           const DataFacts& of_phase);

}  // namespace tare
