// Finding what a run goes on from, and putting away what it does not.
#pragma once

#include <filesystem>
#include <optional>

#include "tare/learner/train_state.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/run.h"

namespace tare {

/// The automatic checkpoint in `folder` to go on from, verified; unset: start anew. With
/// Resume::never those of an unfinished run get the prefix "before-", where one more run without
/// --resume replaces them. Leftovers of killed saves are swept. Throws ConfigError with
/// Resume::always where there is none, and where the recipe in the folder is another one but for
/// device, workers and save_every; FormatError where none verifies.
[[nodiscard]] std::optional<CheckpointInfo> find_resumable(const RecipeOptions& recipe,
                                                           const std::filesystem::path& folder,
                                                           Resume resume);

/// Throws the ConfigError that says that there is nothing in `folder` to go on with.
[[noreturn]] void refuse_resume(const std::filesystem::path& folder);

/// Removes the automatic checkpoints of a run that has ended.
void remove_autosaves(const std::filesystem::path& folder);

}  // namespace tare
