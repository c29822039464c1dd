// The options of a Learner that a recipe gives. Internal.
#pragma once

#include "tare/learner/options.h"
#include "tare/recipe/recipe.h"

namespace tare {

/// What all phases have in common, without device, batch, folder and callbacks.
[[nodiscard]] LearnerOptions learner_options(const RecipeOptions& recipe);

}  // namespace tare
