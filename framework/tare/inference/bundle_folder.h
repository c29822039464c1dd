// Folders and recipes that are named where a bundle is expected.
#pragma once

#include <filesystem>
#include <string>

namespace tare {

/// Returns `path`, or if it is a folder, such as a run's, the only .tare file in it. Throws
/// ConfigError for a folder with none and for a recipe, saying what it is and what makes a bundle,
/// and for a folder with several; IoError for one that cannot be read.
[[nodiscard]] std::filesystem::path bundle_at(const std::filesystem::path& path);

/// Describes a folder that is neither a run's nor a checkpoint, as the rest of a message that
/// begins with the folder's name: "holds runs: give one of them, such as runs/sweep/a", where it
/// does. Throws IoError.
[[nodiscard]] std::string other_folder_text(const std::filesystem::path& folder);

/// Returns the command that repeats the run of a folder and writes a bundle, and what it does. Used
/// for a run that has kept neither a checkpoint nor a bundle.
[[nodiscard]] std::string run_again_text(const std::filesystem::path& folder);

}  // namespace tare
