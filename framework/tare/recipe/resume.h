// Finding the checkpoint that a recipe's run resumes from. Internal.
#pragma once

#include <filesystem>
#include <optional>

#include "tare/learner/train_state.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/run.h"

namespace tare {

/// The newest automatic checkpoint in `folder` that verifies; unset: start from the beginning. With
/// Resume::never, checkpoints of an unfinished run are renamed with the prefix "before-", replacing
/// earlier ones of that name. Removes leftovers of killed saves. Throws ConfigError with
/// Resume::always if there is no checkpoint, and if the recipe in the folder differs in more than
/// folder, device, workers and save_every; FormatError if no checkpoint verifies.
[[nodiscard]] std::optional<CheckpointInfo> find_resumable(const RecipeOptions& recipe,
                                                           const std::filesystem::path& folder,
                                                           Resume resume);

/// Throws the ConfigError that says that there is nothing in `folder` to go on with.
[[noreturn]] void refuse_resume(const std::filesystem::path& folder);

/// Removes the automatic checkpoints of a run that has ended.
void remove_autosaves(const std::filesystem::path& folder);

}  // namespace tare
