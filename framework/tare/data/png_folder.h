// A folder of PNG files, one subfolder a class.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tare/data/dataset.h"

namespace tare {

struct PngFolderOptions {
  int64_t channels = 0;  ///< 1 grey, 3 RGB, 0: those of the first file
  int64_t height = 0,
          width = 0;  ///< resized to this while reading; 0: all files must have one size
  int64_t limit_bytes = int64_t{8} << 30;  ///< of decoded images in memory
};

/// Reads folder/<class>/<file>.png into memory as uint8 [N, C, H, W]; classes and files in the
/// order of their names (bytewise); other files and hidden ones are left out. labels() are the
/// folder names. Throws IoError, FormatError naming the file, ConfigError for a folder without
/// classes, a class without images, or more than the limit.
[[nodiscard]] DatasetPtr png_folder(const std::filesystem::path& folder,
                                    const PngFolderOptions& options = {});

}  // namespace tare
