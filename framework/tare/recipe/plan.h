// plan_recipe(): what each phase of a recipe will need, before anything is run.
#pragma once

#include "tare/recipe/recipe_plan.h"

namespace tare {

/// Plans every phase on meta tensors. The data sets are read or generated, one at a time, for their
/// sizes, and downloaded only if the options allow it; nothing is trained and no device of the plan
/// needs to be there. Not in the plan: checkpoints that a phase loads, callbacks of the program.
/// Throws ConfigError, IoError and FormatError for a recipe or data that run_recipe() would refuse.
[[nodiscard]] RecipePlan plan_recipe(const RecipeOptions& recipe,
                                     const RecipePlanOptions& options = {});

}  // namespace tare
