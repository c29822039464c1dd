// Checks what a recipe asks for against the ranks that would train it. Internal.
#pragma once

#include <cstdint>

#include "tare/recipe/recipe.h"

namespace tare {

/// Throws ConfigError, at its place, for what several ranks cannot do, and for a batch of which
/// some of them would have no part. Nothing is refused for one rank.
void check_ranks(const RecipeOptions& recipe, int64_t ranks);

}  // namespace tare
