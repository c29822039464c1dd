// Starts the ranks of `tare run --ranks`, and tells a rank which one it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tare/parallel/group.h"
#include "tare/recipe/recipe.h"

namespace tare::cli {

/// Runs the command of this process, without `--ranks`, in `count` >= 1 processes that train
/// together, on this machine. The first one writes to standard output; what any of them writes to
/// standard error is passed on, a line that several write once. A signal to this process is passed
/// on, and the ranks then have their time to save. Where one of them ends with an error the others
/// are stopped. Returns the exit code of the first that has one other than 0, but kFailed only if
/// all that fail have it: ranks end so because another one did. A rank that a signal N ended has
/// 128 + N.
int run_ranks(int64_t count);

/// Meets the other ranks where this process is one of several, as its environment says; null where
/// it is alone. Gives the recipe this rank's device, on which the group exchanges. Throws what
/// Group throws, and ConfigError where the ranks have different recipes or `settings`, a text of
/// the options that all need to have alike.
[[nodiscard]] std::shared_ptr<parallel::Group> join_ranks(RecipeOptions& recipe,
                                                          const std::string& settings,
                                                          const parallel::GroupOptions& options);

/// Waits a moment where this process is a rank behind the first, whose error the first rank most
/// likely has too: the program that has started the ranks stops the others when the first one ends,
/// so that its message is there once. Ranks of `tare run --ranks` do not wait.
void let_first_rank_speak();

/// Throws ConfigError where this process is one of several ranks; `command`, such as "tare bench",
/// is of one process.
void refuse_ranks(const std::string& command);

}  // namespace tare::cli
