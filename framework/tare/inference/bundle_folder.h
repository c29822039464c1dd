// Folders that are named where a bundle is expected.
#pragma once

#include <filesystem>
#include <string>

namespace tare {

/// `path`, or where that is a folder, such as that of a run, the only .tare file in it. Throws
/// ConfigError for a folder with none, saying what it is and what makes a bundle, or with several;
/// IoError for one that cannot be read.
[[nodiscard]] std::filesystem::path bundle_at(const std::filesystem::path& path);

/// What a folder is that is neither a run's nor a checkpoint: "holds runs: give one of them, such
/// as runs/sweep/a", where it does. For a message, behind the folder's name. Throws IoError.
[[nodiscard]] std::string other_folder_text(const std::filesystem::path& folder);

/// The command that makes the run of a folder again, with a bundle, and what it does: for a run
/// that has kept neither a checkpoint nor a bundle.
[[nodiscard]] std::string run_again_text(const std::filesystem::path& folder);

}  // namespace tare
