// Refuses recipes that several ranks cannot train.
#include "tare/recipe/rank_check.h"

#include <set>
#include <string>

#include "tare/recipe/phase_values.h"
#include "tare/recipe/refused_value.h"
#include "tare/train/rank_options.h"

namespace tare {
namespace {

void check_options(const RecipeOptions& recipe) {
  if (!recipe.learner.stages.empty())
    refuse(recipe, "stages", "divide the model of one process, and several ranks train",
           "no stages where several ranks train",
           std::to_string(recipe.learner.stages.size()) + " stages");
  if (const auto refused = refused_by_ranks(recipe.learner)) {
    const std::set<std::string> of_ranks{"shard", "static_graph", "compression"};
    refuse(recipe, (of_ranks.contains(refused->field) ? "data_parallel." : "") + refused->field,
           refused->problem, refused->allowed, refused->got);
  }
}

}  // namespace

void check_ranks(const RecipeOptions& recipe, int64_t ranks) {
  if (ranks > 1) check_options(recipe);
  for (size_t phase = 0; phase < recipe.phases.size(); ++phase) {
    const auto batch = given_batch(recipe, recipe.phases[phase]);
    if (batch && *batch < ranks)
      refuse(recipe, batch_path(recipe, phase),
             "is less than the ranks, of which each trains on a part of it",
             "at least " + std::to_string(ranks) + ", or fewer ranks", std::to_string(*batch));
  }
}

}  // namespace tare
