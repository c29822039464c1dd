#include "tare/cli/table.h"

#include <algorithm>

namespace tare::cli {

std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].head.size());
    for (const auto& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto add = [&](size_t i, const std::string& cell) {
    const std::string gap(widths[i] - cell.size(), ' ');
    text += columns[i].figure ? gap + cell : cell;
    if (i + 1 == columns.size()) {
      text += '\n';
    } else {
      text += (columns[i].figure ? "" : gap) + "  ";
    }
  };
  for (size_t i = 0; i < columns.size(); ++i) add(i, columns[i].head);
  for (const auto& row : rows)
    for (size_t i = 0; i < columns.size(); ++i) add(i, row[i]);
  return text;
}

}  // namespace tare::cli
