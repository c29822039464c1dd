// Checks the file of a table, column by column.
#include "tare/data/table_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

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
  TableCheck check;
  std::vector<TableText> files;
  files.push_back(read_table(path, {}, &check.problems));
  const RawTable table = raw_table(files, {.target = target}, check.problems, check.warnings);
  check.rows = table.rows;
  for (const RawColumn& column : table.inputs)
    if (!column.numbers.empty() || !column.codes.empty()) check.columns.push_back(checked(column));
  check.classes = table.labels;
  return check;
}

}  // namespace tare
