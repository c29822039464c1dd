// The folder of a run: which one it is, and what it holds. Internal.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "tare/base/folder_lock.h"
#include "tare/recipe/position.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/run_options.h"
#include "tare/train/train_state.h"

namespace tare {

/// Holds the locked folder of a run, and the checkpoint from which it continues.
struct RunFolder {
  std::filesystem::path path{};
  std::unique_ptr<io::FolderLock> lock{};
  std::optional<CheckpointInfo> from{};  ///< unset: from the beginning
  std::filesystem::path
      unfinished{};  ///< the last run passed by that could be continued; empty: none
};

/// Whether the folder holds a recipe.yaml that a run has written.
[[nodiscard]] bool holds_recipe_of_run(const std::filesystem::path& folder);

/// Finds or makes the folder: folder/name, where that holds nothing under the names that the run
/// writes. Else it is the first of folder/name-2, folder/name-3 ... that holds nothing of them.
/// With Resume::always or automatic the last of them whose run is unfinished. With `overwrite`
/// always folder/name, from which the results of the earlier run are removed. Throws ConfigError
/// with Resume::always if there is nothing to resume, if the checkpoint belongs to another recipe
/// or other data than `origin`; where a folder must be taken that holds, under a name that the run
/// writes, what no earlier run is known to have written, or the weights from which this run starts;
/// StateError if another process runs in it; FormatError if no checkpoint verifies; IoError.
[[nodiscard]] RunFolder open_run_folder(const RecipeOptions& recipe, Resume resume, bool overwrite,
                                        const Origin& origin);

/// Writes recipe.yaml to the folder: every setting with its default or its value, below a line of
/// comment by which open_run_folder() knows the folder of a run. Throws IoError.
void write_recipe(const RecipeOptions& recipe, const std::filesystem::path& folder);

}  // namespace tare
