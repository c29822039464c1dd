// The names of the files in a run's folder, of which no two may be equal. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/recipe/recipe.h"

namespace tare {

/// Describes a file or folder whose name is a value of the recipe.
struct NamedFile {
  std::string name{};   ///< in the run's folder
  std::string key{};    ///< the place of the name in the recipe: "phases.0.save"
  std::string owner{};  ///< "the checkpoint of phase 1"
};

/// Lists the tables and checkpoints of the phases, the files of the callbacks, and the bundle.
/// Throws ConfigError as make_callbacks().
[[nodiscard]] std::vector<NamedFile> named_files(const RecipeOptions& recipe);

/// Lists the names of named_files() and of the checkpoints of PhaseOptions::best. Throws
/// ConfigError as make_callbacks().
[[nodiscard]] std::vector<std::string> result_names(const RecipeOptions& recipe);

/// Returns the name of the checkpoint of PhaseOptions::best.
[[nodiscard]] std::string best_checkpoint(size_t phase);

/// Throws ConfigError for two files of the run's folder that would have one name, also for one that
/// a sweep writes there.
void check_file_names(const RecipeOptions& recipe);

}  // namespace tare
