// A table whose rows are texts with their classes, as a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/data/collate.h"
#include "tare/data/splits.h"

namespace tare {

/// Sets how text_list() reads its files.
struct TextListOptions {
  std::string text = "text";  ///< the column of the texts
  /// The column of the classes; empty: `label` where the table has such a column, else the texts
  /// have no labels.
  std::string label{};
  int64_t length = 0;       ///< bytes of a text that are read, >= 0; 0: all
  Collate collate = pad();  ///< joins texts of different length
  std::vector<std::filesystem::path> valid_files{};  ///< of a validation split of their own
  std::vector<std::filesystem::path> test_files{};   ///< of a test split of their own
};

/// Reads the texts of a CSV, TSV or JSON lines file into memory; each is an input, int64 [length],
/// of its bytes, 0 to 255, named as the column is, and has a target "label", its class. Other
/// columns are skipped. The classes are the labels of `file`, in bytewise order; all texts of
/// `file` are the training split. sample_name() is "reviews.csv:7", the file and the line. Throws
/// IoError; ConfigError for a column that a file lacks; FormatError, naming file and line, for an
/// empty text, an empty label, a class that `file` does not have, and a file that is no table.
[[nodiscard]] Splits text_list(const std::filesystem::path& file,
                               const TextListOptions& options = {});

}  // namespace tare
