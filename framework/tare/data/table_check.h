// Looks through the file of a table for what the data sets csv and jsonl would refuse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/transform/table_text.h"

namespace tare {

struct DataOptions;

/// Describes a column as the data sets would read it.
struct CheckedColumn {
  std::string name{};     ///< in the head
  std::string kind{};     ///< number | category, or of a target number | class | label
  bool target = false;    ///< is the column to predict
  int64_t missing = 0;    ///< fields
  int64_t different = 0;  ///< values or texts that are there
  double least = 0, mean = 0, most = 0;  ///< of numbers
};

/// Holds what check_table() has found.
struct TableCheck {
  TableFindings problems{};  ///< each would be an error of the data set
  TableFindings warnings{};  ///< the rows are read in spite of these
  /// Lists the columns that can be read, the categories first and the targets last.
  std::vector<CheckedColumn> columns{};
  int64_t rows = 0;                    ///< that have all fields
  std::vector<std::string> classes{};  ///< of one target; empty: it is a number, or not given
};

/// Reads a CSV file or JSON lines as the data sets csv and jsonl would with this target and no
/// other option; an empty target: every column is an input. Throws as read_table() and raw_table().
[[nodiscard]] TableCheck check_table(const std::filesystem::path& path, const std::string& target);
/// Reads all files of the data set csv or jsonl with these options; an empty target: every column
/// is an input. A name other than csv and jsonl: the file's extension says which of them it is.
/// Throws as above, and ConfigError for a file that is not there.
[[nodiscard]] TableCheck check_table(const DataOptions& options);
/// Returns the files that the data set csv or jsonl reads with these options, and throws
/// ConfigError for one that is given twice.
[[nodiscard]] std::vector<std::filesystem::path> table_paths(const DataOptions& options);

}  // namespace tare
