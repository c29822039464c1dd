// A folder with a recipe for a card, in which the program `tare` is run.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/environment.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace tare::testing {

/// Whether the cards are those of the stand-in.
inline bool is_stand_in() { return std::getenv("TARE_STAND_IN") != nullptr; }

/// Whether kernels compute: not those of the stand-in without its values.
inline bool kernels_compute() {
  return !is_stand_in() || std::string_view(std::getenv("TARE_STAND_IN")) != "plain";
}

/// What differs between the recipes of the tests on cards, as YAML.
struct CardRecipe {
  int count = 64;        ///< generated digits
  std::string model{};   ///< "{name: mlp}"
  std::string phases{};  ///< "[{name: all, epochs: 2}]"
};

/// Holds a folder with `card.yaml`, which trains on cuda:0 and exports card.tare. What is kept of
/// the cards, such as measured contexts, is kept in it too.
class CardFolder {
 public:
  explicit CardFolder(const CardRecipe& recipe) {
    std::ofstream(*this / "card.yaml")
        << "name: card\nworkers: 0\nbatch: 32\ndevice: cuda:0\nsave_every: 2\n"
        << "data: {name: generated_digits, count: " << recipe.count << ", size: 16}\n"
        << "model: " << recipe.model << "\nphases: " << recipe.phases << "\nexport: card.tare\n";
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return folder_ / name;
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path(); }
  /// Runs the program in the folder.
  [[nodiscard]] ProgramResult tare(const std::vector<std::string>& words) const {
    return run_program("tare", words, path());
  }
  /// The file by which the programs that are run share what the stand-in's cards hold.
  [[nodiscard]] std::string shared() const { return (*this / "shared").string(); }

 private:
  TempDir folder_;
  ScopedVariable home_{"TARE_HOME", (folder_ / "home").string()};
};

}  // namespace tare::testing
