// Puts the values of a phase in place of those of its recipe.
#include "tare/recipe/learner_options.h"

#include <utility>

#include "tare/recipe/phase_data.h"
#include "tare/recipe/target_metrics.h"

namespace tare {

LearnerOptions learner_options(const RecipeOptions& recipe, size_t phase, const DataFacts& facts) {
  const PhaseOptions& own = recipe.phases[phase];
  LearnerOptions options = recipe.learner;
  options.metrics = metrics_of(recipe);
  options.batch = batch_of(recipe, own, facts);
  options.micro_batch = micro_batch_of(recipe, own);
  options.recompute = recompute_of(recipe, own);
  options.offload = offload_of(recipe, own);
  if (recipe.overfit > 0) options.shuffle = false;  // the same batches in each epoch
  options.folder = recipe.folder / recipe.name;
  options.stop_on_nan = false;  // a callback of the run checks the losses and names the phase
  options.progress = false;     // the run prints its own table
  return options;
}

FitSetup fit_setup(const LearnerOptions& options, Splits data) {
  return {.data = std::move(data),
          .batch = options.batch,
          .micro_batch = MicroBatch{options.micro_batch},
          .recompute = options.recompute,
          .offload = options.offload};
}

}  // namespace tare
