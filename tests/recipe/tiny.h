// A recipe of three phases that runs in half a second.
#pragma once

#include "support/temp_dir.h"
#include "tare/recipe/run.h"

namespace tare::testing {

inline RecipeOptions tiny(const TempDir& folder) {
  RecipeOptions r;
  r.name = "tiny";
  r.folder = folder.path();
  r.learner.device = "cpu";
  r.batch = 32;
  r.data.name = "generated_digits";
  r.data.count = 200;
  r.data.size = 16;
  r.model.options.width = 4;
  r.phases = {{.name = "first", .lr = 1e-2, .save = "first"},
              {.name = "head", .load = "first", .reset_head = true, .freeze_to = -1, .lr = 1e-2},
              {.name = "all", .size = 20, .lr = lr_range(1e-3, 1e-2)}};
  r.export_to = "tiny.tare";
  return r;
}

}  // namespace tare::testing
