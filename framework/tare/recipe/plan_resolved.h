// plan_resolved(): plan_recipe() with data sets that may be open already. Internal.
#pragma once

#include "tare/recipe/recipe_data.h"
#include "tare/recipe/recipe_plan.h"

namespace tare {

/// Plans a checked recipe. `facts`: of the recipe's own data. Phases whose data are open come
/// first, so that each data set is read as few times as possible.
[[nodiscard]] RecipePlan plan_resolved(const RecipeOptions& recipe,
                                       const RecipePlanOptions& options, const DataFacts& facts,
                                       RecipeData& data);

}  // namespace tare
