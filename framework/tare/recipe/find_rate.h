// find_rate(): a search for the learning rate of a phase of a recipe, without a run.
#pragma once

#include <string>

#include "tare/optim/lr_find.h"
#include "tare/recipe/recipe.h"

namespace tare {

/// Searches for the rate of phase number `phase`, from 0: with the data, the frozen layers and the
/// batch of the phase, on a model with its first weights. The options are those of the phase's
/// `lr: {find: ...}`, or the defaults. Writes nothing. Throws ConfigError for a phase that the
/// recipe does not have, and what run_recipe() and Learner::lr_find() throw.
[[nodiscard]] LrFindResult find_rate(const RecipeOptions& recipe, size_t phase = 0);

/// Returns {name, phase, lr (null without a suggestion), suggestion, valley, steepest, minimum,
/// stopped_early, seconds, points[] {lr, loss, smoothed}} as JSON.
[[nodiscard]] std::string to_json(const LrFindResult& found, const RecipeOptions& recipe,
                                  size_t phase);

}  // namespace tare
