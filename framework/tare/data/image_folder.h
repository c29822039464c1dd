// A folder of PNG, JPEG and WebP files as a data set, one subfolder per class, or without labels.
#pragma once

#include <filesystem>
#include <vector>

#include "tare/data/image_parts.h"
#include "tare/data/splits.h"

namespace tare {

/// Reads folder/<class>/<file>, files of PNG, JPEG and WebP in any mixture, as uint8 [channels,
/// height, width]. Classes and files are in bytewise order of their names; other files and hidden
/// ones are skipped, but a link to nothing is an IoError. labels() are the folder names. A folder
/// without subfolders gives the pictures in it, without targets and labels: data to predict on.
/// sample_name() is the path of the file below `folder`. transforms() has the Resize of a given
/// size. Pictures are resized as by resize_image(), with antialiasing, and by the `fit` of the
/// options where their aspect ratio is another one. The samples do not depend on what is kept in
/// memory. Throws IoError; FormatError, naming the file, at once or, where pictures are decoded
/// later, by get(); ConfigError for a folder without pictures, a class without images, a folder of
/// splits (see image_folder_splits()), or options that check() refuses.
[[nodiscard]] DatasetPtr image_folder(const std::filesystem::path& folder,
                                      const ImageFolderOptions& options = {});

/// Whether a folder has the subfolder `train`, and `valid` (or `val`) or `test` beside it, so that
/// image_folder_splits() reads it.
[[nodiscard]] bool has_image_splits(const std::filesystem::path& folder);

/// Reads folder/train, folder/valid (or folder/val) and folder/test, each as image_folder() does,
/// as the splits of these names; one that is not there is null. All have the channels, the size and
/// the classes of `train`, and share `cache_bytes` and `limit_bytes` by their numbers of pictures.
/// Throws as above; ConfigError, naming class and split, for classes that are not in all splits.
[[nodiscard]] Splits image_folder_splits(const std::filesystem::path& folder,
                                         const ImageFolderOptions& options = {});

/// Returns the files that image_folder() or image_folder_splits() reads, in order, split behind
/// split. Throws as they do for the folder.
[[nodiscard]] std::vector<std::filesystem::path> image_files(const std::filesystem::path& folder);

}  // namespace tare
