// Chooses data sets by the extension of a file, by options and by its content.
#include "tare/data/file_data_set.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/parts.h"
#include "tare/data/datasets.h"
#include "tare/data/image_list.h"
#include "tare/data/table_check.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

/// Whether a file is a table with two columns or more, of which two thirds of the lines can be
/// read.
bool reads_as_table(const fs::path& file) {
  try {
    const TableCheck check = check_table(file, "");
    return check.columns.size() > 1 && 2 * check.problems.count <= check.rows;
  } catch (const FormatError& error) {
    log::debug(error.what());
    return false;
  }
}

/// Whether the data set `one` takes one of the options that the data set `other` does not take.
bool has_option_of(const std::string& one, const std::string& other,
                   const std::vector<std::string>& options) {
  const auto takes = [](const std::string& data_set, const std::string& option) {
    const std::vector<std::string> fields = datasets::fields_of(data_set);
    return std::ranges::find(fields, option) != fields.end();
  };
  return std::ranges::any_of(options, [&](const std::string& option) {
    return takes(one, option) && !takes(other, option);
  });
}

}  // namespace

std::string data_set_of(const fs::path& file, const std::vector<std::string>& options) {
  const std::string extension = lower_case(file.extension().string());
  if (extension == ".npy") return "npy";
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") return "jsonl";
  const bool of_pictures =
      options.empty() || std::ranges::find(options, "targets") != options.end();
  if (of_pictures && is_picture_list(file)) return "image_list";
  if (extension != ".txt") return "csv";
  if (has_option_of("text", "csv", options)) return "text";
  return has_option_of("csv", "text", options) || reads_as_table(file) ? "csv" : "text";
}

}  // namespace tare
