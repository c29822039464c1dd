// Gives what the page of a run draws as JSON and as tables of comma-separated values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tare::report {

/// Returns a number as a field of a table, so that reading it gives the same bits; empty for NaN.
[[nodiscard]] std::string csv_number(double value);

/// Holds one table as the text of a file.
struct DataFile {
  std::string name{};  ///< "epochs.csv"
  std::string text{};  ///< one line of names, then one for each row
};

/// Reads the folder of a run and returns one JSON object: its name, recipe.yaml as text, the phases
/// with their epochs, steps and rates, the memory over time (null without a recording), the worst
/// rows of a table, report.json (null until the run has ended), failure.json (null unless an error
/// has ended it) and what is missing, in sentences.
/// `trace` and errors: see html_report().
[[nodiscard]] std::string run_json(const std::filesystem::path& folder,
                                   const std::filesystem::path& trace = {});

/// Reads the folder of a run and returns its tables: epochs, steps, rates of a search, phases,
/// memory over time, samples by label and prediction, and the samples of the highest loss. A table
/// without rows is skipped. `trace` and errors: see html_report().
[[nodiscard]] std::vector<DataFile> run_tables(const std::filesystem::path& folder,
                                               const std::filesystem::path& trace = {});

}  // namespace tare::report
