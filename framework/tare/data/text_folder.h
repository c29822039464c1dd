// A folder of text files as a data set, one subfolder per class, or without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tare/data/collate.h"
#include "tare/data/dataset.h"

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
/// without targets. sample_name() is the path of the file below `folder`. Throws IoError;
/// FormatError, naming the file, for an empty one; ConfigError for a folder without texts, a class
/// without one, or more bytes than the limit.
[[nodiscard]] DatasetPtr text_folder(const std::filesystem::path& folder,
                                     const TextFolderOptions& options = {});

/// Whether a folder is one for text_folder() and not for image_folder(): there are texts where
/// text_folder() reads them, and no pictures. Throws IoError.
[[nodiscard]] bool is_text_folder(const std::filesystem::path& folder);

/// Returns the files that text_folder() reads, in its order. Throws as it does for the folder.
[[nodiscard]] std::vector<std::filesystem::path> text_files(const std::filesystem::path& folder);

}  // namespace tare
