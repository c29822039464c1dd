// The fields of a table in a file: CSV after RFC 4180, or JSON lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Sets how the file of a table is read.
struct TableFormat {
  /// csv | jsonl; empty: jsonl for the extensions .jsonl, .ndjson and .json, and on standard input
  /// where it begins with a brace or a bracket; else csv.
  std::string kind{};
  std::string separator{};  ///< of a CSV file: one character; empty: the one that its head has most
  bool header = true;       ///< false: a CSV file has no names, and they are column1, column2, ...
  int64_t limit_bytes = int64_t{2} << 30;  ///< larger files are refused
};

/// Says what is wrong with a line, or with a column.
struct TableFinding {
  std::string path{};     ///< of the file; empty: all files
  int64_t line = 0;       ///< from 1; 0: the column as a whole
  std::string column{};   ///< its name; empty: the whole line
  std::string problem{};  ///< continues the place: "has 3 fields, and the head names 4"
};

/// Counts findings and keeps the first of them.
struct TableFindings {
  static constexpr size_t kKept = 1000;  ///< how many are kept
  std::vector<TableFinding> list{};      ///< the first kKept, in the order in which they were found
  int64_t count = 0;                     ///< of all
  /// Counts a finding.
  void add(TableFinding finding);
};
/// Returns "line 7, column 'age' is no number" for messages.
[[nodiscard]] std::string text_of(const TableFinding& finding);

/// Holds the fields of a table as text. Movable; views of fields stay valid in the moved-to object.
class TableText {
 public:
  /// Returns the path as it was given; "-": standard input.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the names of the columns, each once.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Returns the number of rows.
  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(lines_.size()); }
  /// Returns the line, from 1, in which a row begins; of a JSON array, the number of the object.
  /// `row`: in [0, rows()).
  [[nodiscard]] int64_t line(int64_t row) const { return lines_[static_cast<size_t>(row)]; }
  /// Returns a field without its quotes; UTF-8. Blanks around an unquoted field are removed.
  [[nodiscard]] std::string_view field(int64_t row, size_t column) const {
    return fields_[static_cast<size_t>(row) * names_.size() + column];
  }

 private:
  friend class TableReader;
  std::string path_;
  std::vector<char> bytes_;  // which the fields of a CSV file point into
  std::vector<std::string> names_;
  std::vector<std::string_view> fields_;
  std::vector<int64_t> lines_;
};

/// Reads a table. A byte order mark, \r\n and empty lines are skipped. A CSV file may have quoted
/// fields with separators, line breaks and doubled quotes. A line of a JSON lines file is an object
/// of texts, numbers, true, false and null; a name that a line lacks is a missing field there. An
/// array of such objects is taken in place of the lines.
/// `path`: "-" for standard input. A line that cannot be read is added to `findings` and skipped,
/// or, where that is null, thrown as FormatError. Throws IoError; ConfigError for a separator that
/// is not one character; FormatError for a file without a row, without names, with a name twice, or
/// with a quote that is not closed, and for one that is no text in UTF-8, such as a picture.
[[nodiscard]] TableText read_table(const std::filesystem::path& path,
                                   const TableFormat& format = {},
                                   TableFindings* findings = nullptr);

}  // namespace tare
