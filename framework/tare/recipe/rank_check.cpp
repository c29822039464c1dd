// Refuses recipes that several ranks cannot train.
#include "tare/recipe/rank_check.h"

#include <string>

#include "tare/recipe/phase_values.h"
#include "tare/recipe/refused_value.h"

namespace tare {

void check_ranks(const RecipeOptions& recipe, int64_t ranks) {
  if (ranks == 1) return;
  if (recipe.learner.step_in_backward)
    refuse(recipe, "step_in_backward", "steps before the ranks have averaged a gradient",
           "false where several ranks train", "true");
  if (recipe.learner.data_parallel.sync_batch_norm && recipe.learner.micro_batch)
    refuse(recipe, "micro_batch", "cuts the batches over which sync_batch_norm normalises",
           "one of them", std::to_string(*recipe.learner.micro_batch));
  for (size_t phase = 0; phase < recipe.phases.size(); ++phase) {
    const auto batch = given_batch(recipe, recipe.phases[phase]);
    if (batch && *batch < ranks)
      refuse(recipe, batch_path(recipe, phase),
             "is less than the ranks, of which each trains on a part of it",
             "at least " + std::to_string(ranks) + ", or fewer ranks", std::to_string(*batch));
  }
}

}  // namespace tare
