// The runner of a tare::Fork program: it starts the program again for each cell. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tare/sweep/outcome.h"

namespace tare {

/// Holds the arguments with which a program was started; a run has all three.
struct ForkArguments {
  std::filesystem::path config{};
  std::string name{};
  int64_t id = -1;
  [[nodiscard]] bool is_run() const { return !name.empty(); }
};
/// Reads `--config FILE --name NAME --id ID`; other words are the program's own. Throws ConfigError
/// for one without its value, and for a name or a number without the other.
[[nodiscard]] ForkArguments fork_arguments(const std::vector<std::string>& words);

/// Returns the outcome of a run from the end of its process: it is complete where it has written
/// run_data.json and its exit code is 0. The metric is val_loss, or train_loss for one without
/// validation.
[[nodiscard]] sweep::Outcome outcome_of_fork(const std::filesystem::path& folder,
                                             const launch::ChildEnd& end);

/// Runs each cell of the configuration that has not run yet. Returns the exit code: 0, or 1 if a
/// run has failed, or 128 and the signal that ended it. `gpus`: indices of the cards that may be
/// used. Throws what sweep::run_sweep() throws, and ConfigError without a GPU where
/// meta.allow_cpu is false.
int run_cells(const std::filesystem::path& config,
              const std::function<std::vector<int64_t>()>& gpus);

}  // namespace tare
