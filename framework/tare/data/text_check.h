// Looks through a folder or a list of texts for what the data sets of texts would refuse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/transform/table_text.h"

namespace tare {

struct DataOptions;

/// Counts the texts of a class.
struct TextClass {
  std::string name{};  ///< its label
  int64_t texts = 0;   ///< of all files
};

/// Holds what a check of texts has found.
struct TextCheck {
  TableFindings problems{};          ///< each would be an error of the data set
  std::vector<TextClass> classes{};  ///< in the order of the data set; empty: there are no labels
  int64_t texts = 0;                 ///< without a problem, of all files
};

/// Reads all files of the data set text_folder, also those of its splits. Problems are those that
/// are empty or cannot be read; it counts no classes. Throws as text_files().
[[nodiscard]] TextCheck check_text_folder(const DataOptions& options);

/// Reads all files of the data set text_list with these options. Throws as text_list() does, but
/// for the lines that are wrong, which are the problems of the result.
[[nodiscard]] TextCheck check_text_list(const DataOptions& options);

}  // namespace tare
