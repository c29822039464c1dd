// The targets of the phases of a recipe, which the outputs of one model stand for. Internal.
#pragma once

#include <vector>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Throws ConfigError, naming both phases, for a phase in which the outputs of the model would have
/// another meaning than the one that the weights before it were trained for: other classes, the
/// classes in another order, a class in place of a number, or a number of another column. Throws it
/// too for a phase whose data lack classes of the phase before it. A phase with reset_head may have
/// other targets. Warns of numbers that look like those of another unit.
/// `phases`: the data of each phase.
void check_same_targets(const RecipeOptions& recipe, const std::vector<DataFacts>& phases);

}  // namespace tare
