// The files that image_folder and `tare predict` read as pictures. Internal.
#pragma once

#include "tare/data/class_folders.h"
#include "tare/transform/image_limits.h"

namespace tare {

/// Describes the files of pictures.
inline constexpr FileKind kPictures{.where = "data.image_folder",
                                    .extensions = kImageExtensions,
                                    .name = "PNG, JPEG or WebP",
                                    .samples = "pictures"};

}  // namespace tare
