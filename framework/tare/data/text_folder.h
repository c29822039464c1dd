// A folder of text files as a data set, one subfolder per class, or without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tare/data/collate.h"
#include "tare/data/dataset.h"
#include "tare/data/splits.h"

namespace tare {

/// Sets how text_folder() reads its files.
struct TextFolderOptions {
  int64_t length = 0;                      ///< bytes of a text that are read, >= 0; 0: all
  Collate collate = pad();                 ///< joins texts of different length
  int64_t limit_bytes = int64_t{1} << 30;  ///< of all texts
};

/// Reads folder/<class>/<file>.txt into memory; each text is an input "text", int64 [length], of
/// its bytes, 0 to 255, and has a target "label", its class. Classes and files are in bytewise
/// order of their names; other files and hidden ones are skipped, but a link to nothing is an
/// IoError. labels() are the folder names. A folder without subfolders gives the texts in it,
/// without targets. sample_name() is the path of the file below `folder`. Throws IoError,
/// also for more bytes than the limit; FormatError, naming the file, for an empty one; ConfigError
/// for a folder without texts, a class without one, or a folder of splits (see
/// text_folder_splits()).
[[nodiscard]] DatasetPtr text_folder(const std::filesystem::path& folder,
                                     const TextFolderOptions& options = {});

/// Whether a folder has the subfolder `train`, and `valid` (or `val`) or `test` beside it, so that
/// text_folder_splits() reads it.
[[nodiscard]] bool has_text_splits(const std::filesystem::path& folder);

/// Reads folder/train, folder/valid (or folder/val) and folder/test, each as text_folder() does, as
/// the splits of these names; one that is not there is null. All have the classes of `train`, and
/// `limit_bytes` is that of all of them together. Throws as above; ConfigError, naming class and
/// split, for classes that are not in all splits.
[[nodiscard]] Splits text_folder_splits(const std::filesystem::path& folder,
                                        const TextFolderOptions& options = {});

/// Whether a folder is one for text_folder() or text_folder_splits() and not for image_folder():
/// there are texts in it or, where it has subfolders, anywhere in these, and no pictures. Throws
/// IoError.
[[nodiscard]] bool is_text_folder(const std::filesystem::path& folder);

/// Returns the files that text_folder() or text_folder_splits() reads, in order, split behind
/// split. Throws as they do for the folder.
[[nodiscard]] std::vector<std::filesystem::path> text_files(const std::filesystem::path& folder);

}  // namespace tare
