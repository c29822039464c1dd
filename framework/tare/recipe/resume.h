// Finding the checkpoint that a recipe's run resumes from. Internal.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tare/recipe/position.h"
#include "tare/recipe/recipe.h"
#include "tare/train/train_state.h"

namespace tare {

/// Returns what a resumed run must have in common with the one that it continues: all of the recipe
/// but device, workers, save_every, save_in_background, folder and the paths of the data, whose
/// identity is compared by itself. `recipe` is resolved, see phase_data.h.
[[nodiscard]] std::string essence_of(const RecipeOptions& recipe);
/// Returns the first value in which two recipes differ, as "a.b is 1 there, 2 here"; empty: they
/// are equal. `before` may be of an earlier version of Tare: a key that it lacks has its default.
/// Throws ConfigError for a key of `before` that is not known any more.
[[nodiscard]] std::string difference_of_essences(const std::string& before, const std::string& now);

/// Returns how the data of phase number `phase` differ from those that a checkpoint with these
/// states of callbacks was trained on; empty: not at all, or the checkpoint does not know.
[[nodiscard]] std::string changed_data(const std::vector<CallbackState>& callbacks, size_t phase,
                                       const datasets::Named& now);

/// Whether `folder` holds automatic checkpoints.
[[nodiscard]] bool has_autosaves(const std::filesystem::path& folder);

/// Returns the newest automatic checkpoint in `folder` that verifies; unset: there is none. Removes
/// leftovers of killed saves, see remove_leftovers(). Throws ConfigError if the checkpoint belongs
/// to another recipe or other data than `origin`; FormatError if no checkpoint verifies.
[[nodiscard]] std::optional<CheckpointInfo> find_resumable(const std::filesystem::path& folder,
                                                           const std::vector<std::string>& names,
                                                           const Origin& origin);

/// Removes what killed saves and removals have left in `folder` of the automatic checkpoints and of
/// checkpoints under `names`.
void remove_leftovers(const std::filesystem::path& folder, std::vector<std::string> names);

/// Lists the names of the automatic checkpoints, also of checkpoints that are set aside.
[[nodiscard]] std::vector<std::string> automatic_checkpoints();

/// Renames the checkpoints of an unfinished run, "autosave-0" to "before-autosave-0", replacing
/// earlier ones of that name. Removes leftovers first, see remove_leftovers().
void set_autosaves_aside(const std::filesystem::path& folder,
                         const std::vector<std::string>& names);

/// Throws the ConfigError for a `folder` in which there is nothing to continue, and StateError
/// where another process works in it.
[[noreturn]] void refuse_resume(const std::filesystem::path& folder);

/// Removes the automatic checkpoints of a run that has ended.
void remove_autosaves(const std::filesystem::path& folder);

}  // namespace tare
