// The rows of a run_data.csv that a sweep, or another program, has left in a folder. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tare::sweep {

/// Holds one row: the run, and all columns with their fields as they are written, in quotes where
/// the file has some.
struct RunRow {
  std::string run;
  std::vector<std::pair<std::string, std::string>> fields;
};

/// Returns the rows of the run_data.csv in `folder` in their order, none if there is no such file.
/// The file is read whole, after RFC 4180, so that a field in quotes may have line breaks. A run is
/// named by the last part of the column log_dir, or by the column name. Of two rows for one run the
/// last one counts, at the place of the first. Warns of this, and of a row that is ignored: it has
/// another number of fields than the header, a quote that is not closed, or no name. Throws
/// IoError.
[[nodiscard]] std::vector<RunRow> run_rows(const std::filesystem::path& folder);

/// Returns the text of a field as it is written.
[[nodiscard]] std::string text_of_field(const std::string& written);

}  // namespace tare::sweep
