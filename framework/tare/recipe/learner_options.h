// What a phase of a recipe trains with, for a run and for its plan. Internal.
#pragma once

#include <cstddef>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/train/options.h"

namespace tare {

/// The options of a Learner that trains phase number `phase`, whose data has these facts: those of
/// the recipe with the phase's own values in their place. Callbacks are not among them.
[[nodiscard]] LearnerOptions learner_options(const RecipeOptions& recipe, size_t phase,
                                             const DataFacts& facts);

/// What a phase with these options changes in the Learner that has trained the phase before.
[[nodiscard]] FitSetup fit_setup(const LearnerOptions& options, Splits data);

}  // namespace tare
