// Makes the advice of a phase's plan a command line for its recipe. Internal.
#pragma once

#include <cstddef>
#include <string>

#include "tare/recipe/recipe.h"

namespace tare {

/// Returns PlanSaving::change, assignments with blanks between them, as `tare run` takes them for
/// this recipe: for the phase where it has a value of its own or the change is of its batch alone,
/// and with what the recipe would refuse beside the change set back.
[[nodiscard]] std::string advice_for(const RecipeOptions& recipe, size_t phase,
                                     const std::string& change);

}  // namespace tare
