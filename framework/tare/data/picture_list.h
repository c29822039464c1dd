// The rows of a list of pictures. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tare {

/// Is a row of a list of pictures; see image_list().
struct ListedPicture {
  int64_t line = 0;              ///< of the list, from 1
  std::filesystem::path path{};  ///< of the picture; relative paths continue the list's folder
  std::string label{};           ///< empty: the list has no labels
  std::string split{};           ///< "train", "valid" or "test"; empty: the list has no splits
};

/// Returns the rows of a list, at least one. Throws IoError; FormatError for what is no list of
/// pictures. Looks at no picture.
[[nodiscard]] std::vector<ListedPicture> list_pictures(const std::filesystem::path& file);

}  // namespace tare
