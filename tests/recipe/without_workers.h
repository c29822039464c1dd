// A recipe whose peaks repeat to the byte.
#pragma once

#include <ATen/Parallel.h>

#include "recipe/tiny.h"

namespace tare::testing {

/// The tiny recipe with batches that are made between the steps, so that nothing depends on the
/// speed of a thread.
inline RecipeOptions without_workers(const TempDir& folder) {
  at::set_num_threads(1);
  RecipeOptions recipe = tiny(folder);
  recipe.learner.workers = 0;
  return recipe;
}

}  // namespace tare::testing
