// The man page tare-recipe(5): every key of a recipe.
#pragma once

#include <string>
#include <vector>

#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

/// Returns the page as troff.
[[nodiscard]] std::string man_recipe(const std::vector<RecipeKey>& keys,
                                     const std::string& version);

}  // namespace tare::cli
