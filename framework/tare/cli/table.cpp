#include "tare/cli/table.h"

#include <algorithm>

namespace tare::cli {
namespace {

constexpr size_t kLeast = 8;

/// What remains of a cell in a column that was cut; whole characters of UTF-8.
std::string shown(const std::string& cell, size_t width) {
  if (cell.size() <= width) return cell;
  size_t end = width - 2;
  while (end > 0 && (static_cast<unsigned char>(cell[end]) & 0xc0U) == 0x80U) --end;
  return cell.substr(0, end) + "..";
}

/// Takes what is too much from the widest column of text, again and again.
void narrow(const std::vector<Column>& columns, std::vector<size_t>& widths, size_t width) {
  size_t sum = 2 * (columns.size() - 1);
  for (const size_t w : widths) sum += w;
  while (sum > width) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i)
      if (!columns[i].figure && widths[i] > std::max(kLeast, columns[i].head.size()) &&
          (widest == columns.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == columns.size()) return;
    --widths[widest];
    --sum;
  }
}

}  // namespace

std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows, size_t width) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].head.size());
    for (const auto& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  narrow(columns, widths, width);
  std::string text;
  const auto add = [&](size_t i, const std::string& whole) {
    const std::string cell = shown(whole, widths[i]);
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
