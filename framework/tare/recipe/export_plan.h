// Plans the memory of the export at the end of a run. Internal.
#pragma once

#include <optional>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/recipe/recipe_plan.h"

namespace tare {

/// Bounds the memory of a recipe's export, in which the model has no values. `data` and `last` are
/// of the last phase. Unset for a recipe that exports nothing.
[[nodiscard]] std::optional<ExportPlan> plan_export(const RecipeOptions& recipe,
                                                    const ModelSpec& spec, const DataFacts& data,
                                                    const MemoryPlan& last);

}  // namespace tare
