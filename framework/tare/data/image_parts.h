// Lists of picture files as data sets that have one shape. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/data/class_folders.h"
#include "tare/data/image_folder.h"

namespace tare {

/// Holds the files of a split, or of a whole data set.
struct ImagePart {
  std::string name{};      ///< "train", or "" of a whole data set
  ClassFolders listing{};  ///< its files, with their classes
};

/// Makes a data set of each part. All have the shape of the first file of the first part, but for
/// what the options say, and share `cache_bytes` and `limit_bytes` by their numbers of pictures.
/// Samples are named by their paths below `folder`. Throws as image_folder() does.
[[nodiscard]] std::vector<DatasetPtr> read_image_parts(const std::filesystem::path& folder,
                                                       std::vector<ImagePart> parts,
                                                       const ImageFolderOptions& options);

}  // namespace tare
