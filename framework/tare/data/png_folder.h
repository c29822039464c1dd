// A folder of PNG files as a data set, one subfolder per class, or without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

/// Sets how a folder of PNG files is read.
struct PngFolderOptions {
  int64_t channels = 0;                    ///< 1 grey, 3 RGB, 0: those of the first file
  int64_t height = 0, width = 0;           ///< resize to this; 0: all files must have the same size
  int64_t limit_bytes = int64_t{8} << 30;  ///< of the decoded images
};

/// Reads folder/<class>/<file>.png into memory as uint8 [N, channels, height, width]. Classes and
/// files are in bytewise order of their names; other files and hidden ones are skipped, but a link
/// to nothing is an IoError. labels() are the folder names. A folder without subfolders gives the
/// pictures in it, without targets and labels: data to predict on. sample_name() is the path of the
/// file below `folder`. transforms() lists how files of another size were resized. Throws IoError;
/// FormatError, naming the file; ConfigError for a folder without pictures, a class without images,
/// or more bytes than the limit.
[[nodiscard]] DatasetPtr png_folder(const std::filesystem::path& folder,
                                    const PngFolderOptions& options = {});

/// Returns the files that png_folder() reads, in its order. Throws as it does for the folder.
[[nodiscard]] std::vector<std::filesystem::path> png_files(const std::filesystem::path& folder);

}  // namespace tare
