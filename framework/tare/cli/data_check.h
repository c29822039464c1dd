// `tare data check`: what is wrong with a folder of pictures.
#pragma once

#include <cstddef>
#include <string>

#include "tare/data/picture_check.h"

namespace tare::cli {

/// Returns the findings, one a line, and then tables of the classes and of the sizes, within
/// `width` columns.
[[nodiscard]] std::string text_of(const PictureCheck& check, size_t width);
/// Returns {folder, pictures, classes[] {split, name, pictures}, formats {}, channels {}, height
/// {min, median, max}, width {}, problems[] {path, problem}, warnings[] {path, problem}}.
[[nodiscard]] std::string json_of(const PictureCheck& check, const std::string& folder);

}  // namespace tare::cli
