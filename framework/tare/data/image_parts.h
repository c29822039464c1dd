// Lists of picture files as data sets that have one shape.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/data/class_folders.h"
#include "tare/data/dataset.h"
#include "tare/data/splits.h"

namespace tare {

/// Sets how a folder or a list of pictures is read.
struct ImageFolderOptions {
  int64_t channels = 0;           ///< 1 grey, 3 RGB, 0: those of the first file
  int64_t height = 0, width = 0;  ///< resize to this; 0: all files must have the same size
  std::string fit = "stretch";    ///< how: stretch | crop | pad, see Resize; needs height and width
  /// Bytes of decoded samples that are kept, once they have been asked for; 0: none; unset: all
  /// pictures are read at once, where they take at most `limit_bytes`, and none is kept otherwise.
  std::optional<int64_t> cache_bytes{};
  int64_t limit_bytes = int64_t{8} << 30;  ///< see cache_bytes
};

/// Throws ConfigError for a negative option, for a height without a width, and for a `fit` that is
/// not known or has no size.
void check(const ImageFolderOptions& options);

/// Holds the files of a split, or of a whole data set.
struct ImagePart {
  std::string name{};      ///< "train", or "" of a whole data set
  ClassFolders listing{};  ///< its files, with their classes
  at::Tensor numbers{};    ///< float32 [files, columns], the targets in place of the classes
};

/// Makes a data set of each part. All have the shape of the first file of the first part, but for
/// what the options say, and share `cache_bytes` and `limit_bytes` by their numbers of pictures.
/// Samples are named by their paths below `folder`. Throws as image_folder() does.
[[nodiscard]] std::vector<DatasetPtr> read_image_parts(const std::filesystem::path& folder,
                                                       std::vector<ImagePart> parts,
                                                       const ImageFolderOptions& options);

/// Makes a data set of each part as read_image_parts() does, and returns them as the splits that
/// the parts are named after: "train", "valid" and "test".
[[nodiscard]] Splits read_image_splits(const std::filesystem::path& folder,
                                       std::vector<ImagePart> parts,
                                       const ImageFolderOptions& options);

}  // namespace tare
