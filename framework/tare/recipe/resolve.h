// A recipe with what its data decides: batches, the number of classes. Internal.
#pragma once

#include <string>

#include "tare/recipe/position.h"
#include "tare/recipe/recipe.h"

namespace tare {

/// A recipe whose values all stand there, and the data that decided some of them.
struct ResolvedRecipe {
  RecipeOptions recipe{};     ///< with batches and the number of classes
  std::string description{};  ///< of the recipe's data
  bool generated = false;     ///< the last phase's data is: its figures are on drawn digits
  Origin origin{};
};
/// Reads every data set of the recipe once, one at a time, and checks each phase against its own.
/// Throws what datasets::make() throws, and ConfigError.
[[nodiscard]] ResolvedRecipe resolve_recipe(const RecipeOptions& recipe);

}  // namespace tare
