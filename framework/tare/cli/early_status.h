// `tare sweep status` without LibTorch, which takes longer to start than the status to be read.
#pragma once

#include <optional>

namespace tare::cli {

/// Runs `tare sweep status` for the file of a sweep that names a recipe, where there is nothing to
/// report as an error. Returns the exit status; unset: nothing was printed, and the program with
/// LibTorch has to do it.
[[nodiscard]] std::optional<int> early_status(int argc, char** argv);

}  // namespace tare::cli
