// Lists folders of files that are divided into splits, each with one subfolder for each class.
// Internal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/data/class_folders.h"
#include "tare/data/datasets.h"

namespace tare {

/// Returns the subfolders of a folder that are splits, in the order train, valid (or val), test;
/// empty: it has none, because train or both others are missing.
[[nodiscard]] std::vector<std::string> folder_splits(const std::filesystem::path& folder);

/// Holds the files of one split.
struct ClassSplit {
  std::string name{};      ///< of its folder: "train", "valid", "val" or "test"
  ClassFolders listing{};  ///< its files, with their classes
};

/// Lists each split of a folder as list_class_folders() does; none: it has no splits. With `warn`
/// it also logs which other subfolders are skipped. Throws as list_class_folders(); ConfigError,
/// naming class and split, for classes that are not in all splits.
[[nodiscard]] std::vector<ClassSplit> list_class_splits(const std::filesystem::path& folder,
                                                        const FileKind& kind, bool warn);

/// Returns the files of a folder of classes, or those of its splits, split behind split. Throws as
/// the functions above, and logs nothing.
[[nodiscard]] std::vector<std::filesystem::path> list_class_files(
    const std::filesystem::path& folder, const FileKind& kind);

namespace datasets {

/// Returns the splits of a folder as data that have splits of their own. Throws ConfigError where
/// the options give the size of a test split that the folder has.
[[nodiscard]] Found found_splits(Splits splits, const DataOptions& options);

}  // namespace datasets
}  // namespace tare
