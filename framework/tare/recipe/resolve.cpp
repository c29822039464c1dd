#include "tare/recipe/resolve.h"

#include "tare/data/datasets.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/resume.h"

namespace tare {

ResolvedRecipe resolve_recipe(const RecipeOptions& given) {
  ResolvedRecipe resolved{.recipe = given};
  RecipeOptions& recipe = resolved.recipe;
  const Origin::Data main = [&] {
    const auto data = datasets::make(recipe.data);
    resolved.description = data.description;
    resolved.generated = data.generated;
    recipe.model.options.classes = classes_of(recipe, data.splits);
    recipe.batch =
        given.batch.value_or(default_batch(data.splits.train ? data.splits.train->size() : 0));
    for (size_t i = 0; i < recipe.phases.size(); ++i)
      if (!recipe.phases[i].data) check_data(recipe, i, data.splits);
    return Origin::Data{data.description, data.identity};
  }();
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    PhaseOptions& phase = recipe.phases[i];
    resolved.origin.data.push_back(main);
    if (!phase.data) continue;
    const auto data = datasets::make(*phase.data);
    if (phase.batch == 0 && !given.batch) phase.batch = batch_of(given, phase, data.splits);
    check_data(recipe, i, data.splits);
    resolved.origin.data.back() = {data.description, data.identity};
    if (i + 1 == recipe.phases.size()) resolved.generated = data.generated;
  }
  check_recipe(recipe);  // with the batches that the data has decided
  resolved.origin.recipe = essence_of(recipe);
  return resolved;
}

}  // namespace tare
