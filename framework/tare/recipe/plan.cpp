// Plans a recipe with the data that it reads.
#include "tare/recipe/plan.h"

#include "tare/recipe/class_weights.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/plan_resolved.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/target_defaults.h"
#include "tare/recipe/weights_bundle.h"

namespace tare {

RecipePlan plan_recipe(const RecipeOptions& given, const RecipePlanOptions& options) {
  check_recipe(given);
  check_files(given);
  RecipeOptions recipe = given;
  RecipeData data(options.download ? datasets::Network::allowed : datasets::Network::forbidden);
  const DataFacts facts = open_data(recipe, data).facts;
  set_target_defaults(recipe, facts);
  check_weights(recipe, facts);
  count_class_weights(recipe, facts);
  return plan_resolved(recipe, options, facts, data);
}

}  // namespace tare
