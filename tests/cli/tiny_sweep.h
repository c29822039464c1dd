// A sweep of four runs, and the program in its folder.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "cli/tiny_recipe.h"
#include "support/files.h"
#include "support/program.h"

namespace tare::testing {

struct Sweep {
  Sweep() {
    std::ofstream(folder / "recipe.yaml") << kTinyRecipe;
    std::ofstream(folder / "sweep.yaml") << R"(name: tiny
recipe: recipe.yaml
metric: {name: accuracy, goal: maximize}
parameters: {phases.0.lr: [1.0e-3, 1.0e-2], model.width: [4, 8]}
)";
  }
  [[nodiscard]] ProgramResult tare(std::vector<std::string> words) const {
    words.insert(words.begin(), "sweep");
    return run_program("tare", words, folder.path());
  }
  [[nodiscard]] std::string data() const { return content_of(folder / "runs/tiny/run_data.csv"); }
  TempDir folder;
};

}  // namespace tare::testing
