// Counts the texts of a table that a coding does not know.
#include "tare/transform/unknown_texts.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tare {

std::vector<UnknownTexts> unknown_texts(const RowCoding& coding, const TableText& table) {
  std::vector<UnknownTexts> found;
  for (const ColumnCoding& column : coding.columns) {
    const auto name = std::ranges::find(table.names(), column.name);
    if (column.kind != "category" || name == table.names().end()) continue;
    const auto place = static_cast<size_t>(name - table.names().begin());
    UnknownTexts unknown{.column = column.name};
    for (int64_t row = 0; row < table.rows(); ++row) {
      const std::string_view field = table.field(row, place);
      if (is_missing(field, coding.missing_values) || code_of(column, field) != kUnknownCode)
        continue;
      if (++unknown.fields == 1) unknown.first = field;
    }
    if (unknown.fields > 0) found.push_back(std::move(unknown));
  }
  return found;
}

}  // namespace tare
