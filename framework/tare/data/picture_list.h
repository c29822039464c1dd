// The rows of a list of pictures. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/transform/table_text.h"

namespace tare {

/// Is a row of a list of pictures; see image_list().
struct ListedPicture {
  int64_t line = 0;               ///< of the list, from 1
  std::filesystem::path path{};   ///< of the picture; relative paths continue the list's folder
  std::string label{};            ///< empty: the list has no labels, or numbers are read
  std::vector<double> numbers{};  ///< one for each column of numbers
  std::string split{};            ///< "train", "valid" or "test"; empty: the list has no splits
};

/// Returns the rows of a list, at least one. `targets`: the columns of numbers to read, in place of
/// the column `label`; empty: none. Throws IoError; ConfigError for a name that is given twice;
/// FormatError for what is no list of pictures, a column that it lacks, and a row that is wrong.
/// With `findings` a wrong row is added to these and is left out, so that there may be no row.
/// Looks at no picture.
[[nodiscard]] std::vector<ListedPicture> list_pictures(const std::filesystem::path& file,
                                                       const std::vector<std::string>& targets = {},
                                                       TableFindings* findings = nullptr);

/// Returns "there are path, shape" with the columns of a list, for messages. Throws as
/// read_table().
[[nodiscard]] std::string columns_text(const std::filesystem::path& file);

/// Whether every number of the pictures is 0 or 1, so that each column is a label that a picture
/// has or lacks; false without columns of numbers.
[[nodiscard]] bool are_labels(const std::vector<ListedPicture>& pictures);

}  // namespace tare
