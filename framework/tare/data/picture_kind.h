// The files that image_folder and `tare predict` read as pictures. Internal.
#pragma once

#include "tare/data/class_folders.h"
#include "tare/transform/image_limits.h"

namespace tare {

/// Describes the files of pictures to the operation `where`.
[[nodiscard]] constexpr FileKind picture_files(const char* where) {
  return {.where = where,
          .extensions = kImageExtensions,
          .name = "PNG, JPEG or WebP",
          .samples = "pictures"};
}

/// Describes them to image_folder().
inline constexpr FileKind kPictures = picture_files("data.image_folder");

}  // namespace tare
