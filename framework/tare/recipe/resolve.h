// A recipe with what its data decides: batches, the number of classes. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/recipe/position.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Holds a recipe whose values all stand there, and the data that decided some of them.
struct ResolvedRecipe {
  RecipeOptions recipe{};           ///< with batches and the number of classes
  std::string description{};        ///< of the recipe's data
  bool generated = false;           ///< the last phase's data is: its figures are on drawn digits
  DataFacts facts{};                ///< of the recipe's data
  std::vector<DataFacts> phases{};  ///< of each phase's data, of images of the phase's size
  Origin origin{};
};
/// Asks for every data set that the recipe and its phases describe, and checks each phase against
/// its own; a phase that only changes the size of the recipe's images needs no other data for that.
/// Throws what datasets::make() throws, and ConfigError.
[[nodiscard]] ResolvedRecipe resolve_recipe(const RecipeOptions& recipe, RecipeData& data);

/// Makes the model of a resolved recipe, from the random generator as it is. `facts`: of the
/// recipe's data; `phases`: of each phase's; `ranks`: that train it together. Throws ConfigError
/// for a model that does not take the data, or that a phase asks for what it does not have.
[[nodiscard]] Model make_model(const RecipeOptions& recipe, const DataFacts& facts,
                               const std::vector<DataFacts>& phases, int64_t ranks = 1);

/// Throws the ConfigError that a run of the recipe on `ranks` would throw before its first phase,
/// for its data and its model. Makes the model on the meta device; a model that cannot be made
/// there is left to the run.
void check_run(const RecipeOptions& recipe, RecipeData& data, int64_t ranks = 1);

}  // namespace tare
