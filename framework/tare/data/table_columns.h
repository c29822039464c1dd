// The columns of tables before they are coded: which are numbers and which are categories, and what
// a coding learns from the rows of a training split.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tare/transform/row_coding.h"
#include "tare/transform/table_text.h"

namespace tare {

/// Sets which columns are read, and as what. Each list has names of columns.
struct TableOptions {
  std::string target{};                       ///< the column to predict; empty: there is none
  std::vector<std::string> targets{};         ///< columns of numbers to predict, in place of it
  std::vector<std::string> columns{};         ///< the inputs; empty: all but the target and `omit`
  std::vector<std::string> omit{};            ///< columns that are not read
  std::vector<std::string> categories{};      ///< are categories, even where all fields are numbers
  std::vector<std::string> numbers{};         ///< are numbers; every other field is an error
  std::vector<std::string> missing_values{};  ///< see is_missing()
};

struct DataOptions;

/// Returns what the options of a data set say of the columns.
[[nodiscard]] TableOptions table_options(const DataOptions& options);

/// Holds the fields of a column, one for each row.
struct RawColumn {
  std::string name{};                ///< in the head
  bool category = false;             ///< `codes` holds the fields, else `numbers`
  std::vector<double> numbers{};     ///< NaN: missing
  std::vector<int32_t> codes{};      ///< indices into `texts`; -1: missing
  std::vector<std::string> texts{};  ///< all texts of the column, sorted
  int64_t missing = 0;               ///< fields
};

/// Holds the columns of one or several files with equal names, their rows behind one another.
struct RawTable {
  std::vector<RawColumn> inputs{};  ///< the categories first, each kind in the order of the head
  std::string target{};             ///< its name; empty: there is none, or there are `target_names`
  std::vector<std::string> target_names{};  ///< of several targets; empty: there are none
  /// The values of the target: int64 [rows], indices into `labels`, or float32 [rows, 1]; those of
  /// several are float32 [rows, columns]; undefined without one.
  at::Tensor targets{};
  /// Names the classes, numbers by size and texts sorted; or, where all numbers of several targets
  /// are 0 or 1, the columns, each of which is a label that a row has or lacks.
  std::vector<std::string> labels{};
  std::vector<RawColumn> target_columns{};  ///< the fields of each target
  int64_t rows = 0;                         ///< of all files
};

/// Reads the columns. A column whose present fields are all numbers is one of numbers, and a column
/// without any number is one of categories; one in which less than a tenth of the fields are no
/// numbers is a problem, unless the options say what it is; so is one whose texts are all numbers
/// with a comma. A target of texts, and one of at most 20 different whole numbers, is a class; one
/// class alone, and numbers whose differences float32 does not hold, are problems. Several targets
/// are columns of numbers. What cannot be read is added to `problems`, and what is read but looks
/// wrong to `warnings`. Throws ConfigError for a name in the options that the first file lacks, a
/// file that lacks a column of the first one, and options that contradict each other.
[[nodiscard]] RawTable raw_table(const std::vector<TableText>& files, const TableOptions& options,
                                 TableFindings& problems, TableFindings& warnings);

/// Learns mean, deviation (of the population), the number in place of a missing one (`fill`: median
/// | mean) and the texts of categories from some rows; the fields of the format keep their
/// defaults. Throws ConfigError for a column of numbers
/// without one in these rows.
[[nodiscard]] RowCoding learn_coding(const RawTable& table, std::span<const int64_t> rows,
                                     const std::string& fill);

/// Returns rows as samples, float32 [rows, columns], as RowEncoder would make them.
[[nodiscard]] at::Tensor encoded(const RawTable& table, const RowCoding& coding,
                                 std::span<const int64_t> rows);

}  // namespace tare
