// The rows of a table, or the pictures, whose number the model predicts worst, in report.json and
// in worst_rows.csv.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tare::report {

/// Names the file in the folder of a run.
inline constexpr const char* kWorstRowsFile = "worst_rows.csv";

/// Holds one row of a table, or one picture, with a number as the target.
struct WorstRow {
  std::string name{};                ///< of its file, and the line of a table: "houses.csv:7"
  double target = 0, predicted = 0;  ///< in the unit of the target
  double loss = 0;                   ///< of this row alone
};
template <class Visit>
void visit_fields(Visit& visit, WorstRow& row) {
  visit("name", row.name);
  visit("target", row.target);
  visit("predicted", row.predicted);
  visit("loss", row.loss);
}

/// Returns the rows as a CSV file, below a line of names. Numbers are written so that reading them
/// gives the same bits.
[[nodiscard]] std::string csv_of(const std::vector<WorstRow>& rows);
/// Reads what csv_of() returns. Throws IoError; FormatError with the file and the line.
[[nodiscard]] std::vector<WorstRow> read_worst_rows(const std::filesystem::path& file);

}  // namespace tare::report
