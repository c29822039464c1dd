// Checks the file of a table, column by column.
#include "tare/data/table_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/data/datasets.h"
#include "tare/data/table_columns.h"

namespace tare {
namespace {

CheckedColumn checked(const RawColumn& column) {
  CheckedColumn result{.name = column.name,
                       .kind = column.category ? "category" : "number",
                       .missing = column.missing,
                       .different = static_cast<int64_t>(column.texts.size())};
  if (column.category) return result;
  std::set<double> values;
  int64_t count = 0;
  for (const double value : column.numbers)
    if (!std::isnan(value)) {
      values.insert(value);
      result.mean += (value - result.mean) / static_cast<double>(++count);
    }
  if (values.empty()) return result;
  result.different = static_cast<int64_t>(values.size());
  result.least = *values.begin();
  result.most = *values.rbegin();
  return result;
}

}  // namespace

TableCheck check_table(const std::filesystem::path& path, const std::string& target) {
  return check_table(DataOptions{.name = "", .file = path.string(), .target = target});
}

TableCheck check_table(const DataOptions& options) {
  datasets::check_files(options);
  const bool named = options.name == "csv" || options.name == "jsonl";
  const TableFormat format{
      .kind = named ? options.name : "", .separator = options.separator, .header = options.header};
  TableCheck check;
  std::vector<TableText> files;
  for (const std::filesystem::path& path : table_paths(options))
    files.push_back(read_table(path, format, &check.problems));
  const RawTable table = raw_table(files, table_options(options), check.problems, check.warnings);
  check.rows = table.rows;
  const auto add = [&](const RawColumn& column) {
    if (column.numbers.empty() && column.codes.empty()) return false;
    check.columns.push_back(checked(column));
    return true;
  };
  for (const RawColumn& column : table.inputs) add(column);
  const bool several = !table.target_names.empty();
  for (const RawColumn& column : table.target_columns) {
    if (!add(column)) continue;
    check.columns.back().target = true;
    if (!table.labels.empty()) check.columns.back().kind = several ? "label" : "class";
  }
  if (!several) check.classes = table.labels;
  return check;
}

std::vector<std::filesystem::path> table_paths(const DataOptions& options) {
  std::vector<std::filesystem::path> paths{options.file};
  paths.insert(paths.end(), options.valid_files.begin(), options.valid_files.end());
  paths.insert(paths.end(), options.test_files.begin(), options.test_files.end());
  std::set<std::filesystem::path> seen;
  for (const auto& path : paths)
    if (!seen.insert(std::filesystem::weakly_canonical(path)).second)
      throw ConfigError("data.make", "file", "is there twice, or valid_files or test_files have it",
                        "each file once, in one split", path.string());
  return paths;
}

}  // namespace tare
