// Computes the options with which a phase of a recipe trains, for a run and its plan. Internal.
#pragma once

#include <cstddef>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/train/options.h"

namespace tare {

/// Returns the options of a Learner for phase number `phase`, whose data has these facts: the
/// recipe's options, replaced by the phase's own where it has any. Callbacks are not among them.
[[nodiscard]] LearnerOptions learner_options(const RecipeOptions& recipe, size_t phase,
                                             const DataFacts& facts);

/// Returns what a phase with these options changes in the Learner of the phase before.
[[nodiscard]] FitSetup fit_setup(const LearnerOptions& options, Splits data);

}  // namespace tare
