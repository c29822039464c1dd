// Copies a recipe's values to the options of a Learner.
#include "tare/recipe/learner_options.h"

namespace tare {

LearnerOptions learner_options(const RecipeOptions& recipe) {
  LearnerOptions options;
  options.loss = recipe.loss;
  for (const auto& metric : recipe.metrics) options.metrics.emplace_back(metric);
  options.precision = recipe.precision;
  options.step_in_backward = recipe.step_in_backward;
  options.frozen_weights = recipe.frozen_weights;
  options.kernels = recipe.kernels;
  options.optimizer = recipe.optimizer;
  options.clip = recipe.clip;
  options.seed = recipe.seed;
  options.drop_last = recipe.drop_last;
  options.workers = recipe.workers;
  options.progress = false;
  return options;
}

}  // namespace tare
