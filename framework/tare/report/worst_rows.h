// The samples that a model of no classes predicts worst, in report.json and in worst_rows.csv.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/report/presence.h"

namespace tare::report {

/// Names the file in the folder of a run.
inline constexpr const char* kWorstRowsFile = "worst_rows.csv";

/// Holds one sample, such as a row of a table or a picture.
struct WorstRow {
  std::string name{};                ///< of its file, and the line of a table: "houses.csv:7"
  double target = 0, predicted = 0;  ///< in the unit of the target; NaN: they are not one number
  double loss = 0;                   ///< of this sample alone
  std::string picture{};             ///< a PNG file in base64; empty: it is no image
  std::string text{};                ///< its beginning, in one line; empty: it is no text
};
template <class Visit>
void visit_fields(Visit& visit, WorstRow& row) {
  visit("name", row.name);
  visit("target", row.target);
  visit("predicted", row.predicted);
  visit("loss", row.loss);
  visit("picture", row.picture, Presence::where_set);
  visit("text", row.text, Presence::where_set);
}

/// Returns the rows as a CSV file, below a line of names, without pictures; with a column of texts
/// where there are any. Numbers are written so that reading them gives the same bits; NaN is an
/// empty field.
[[nodiscard]] std::string csv_of(const std::vector<WorstRow>& rows);
/// Reads what csv_of() returns. Throws IoError; FormatError with the file and the line.
[[nodiscard]] std::vector<WorstRow> read_worst_rows(const std::filesystem::path& file);

}  // namespace tare::report
