// Lists the files of one kind in a folder, with one subfolder for each class. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Describes the kind of files that a reader takes, with the words of its messages.
struct FileKind {
  const char* where = "";  ///< the operation, "data.image_folder"
  /// Lists the extensions in lower case, such as ".png"; the case of a file's does not matter. The
  /// list is static.
  std::span<const std::string_view> extensions{};
  const char* name = "";     ///< "PNG, JPEG or WebP"
  const char* samples = "";  ///< "pictures"
};

/// Whether the path has an extension of the kind, in any case of letters.
[[nodiscard]] bool is_named(const std::filesystem::path& path, const FileKind& kind);

struct ClassFolders {
  std::vector<std::filesystem::path> files;
  std::vector<int64_t> classes;     ///< of each file; empty: the samples have no labels
  std::vector<std::string> labels;  ///< the names of the subfolders, by class

  /// Returns the paths of the files below `folder`.
  [[nodiscard]] std::vector<std::string> names(const std::filesystem::path& folder) const;
  /// Returns int64 [files]; undefined: the samples have no labels.
  [[nodiscard]] at::Tensor targets() const;
};

/// Returns classes and files in bytewise order of their names; other files and hidden ones are
/// skipped, but a link to nothing is taken, so that reading it fails. Without subfolders the files
/// of the folder itself, without labels. With `warn` it logs what a user would not expect. Throws
/// IoError; ConfigError for a folder without files of the kind, or a class without one.
[[nodiscard]] ClassFolders list_class_folders(const std::filesystem::path& folder,
                                              const FileKind& kind, bool warn);

/// Returns the subfolders of a folder that may hold the samples of a class, in bytewise order of
/// their names. Hidden ones are skipped; a link to nothing is taken. Throws IoError.
[[nodiscard]] std::vector<std::filesystem::path> list_subfolders(
    const std::filesystem::path& folder, const FileKind& kind);

/// Returns the files of a folder itself, in bytewise order, without hidden ones: those of the kind
/// and links to nothing, or, with `others`, those of other kinds. Throws IoError.
[[nodiscard]] std::vector<std::filesystem::path> list_files(const std::filesystem::path& folder,
                                                            const FileKind& kind,
                                                            bool others = false);

/// Whether a file of the kind, or a link to nothing, is in the folder or in one below it. Throws
/// IoError.
[[nodiscard]] bool holds_files(const std::filesystem::path& folder, const FileKind& kind);

/// Returns the files of the kind in the folder and in the folders below it, in bytewise order of
/// their paths. Hidden files and folders are skipped; files of other kinds are skipped with a
/// warning; a link to nothing is taken, so that reading it fails. Throws IoError; ConfigError where
/// there is no file of the kind.
[[nodiscard]] std::vector<std::filesystem::path> list_files_below(
    const std::filesystem::path& folder, const FileKind& kind);

}  // namespace tare
