// Chooses the widths of columns and breaks the texts of a table.
#include "tare/base/table.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace tare {
namespace {

constexpr size_t kLeast = 8;

bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }

/// Returns the columns on a terminal: letters of UTF-8, each taken as one.
size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_letter));
}

/// Returns the bytes of the first `columns` letters.
size_t bytes_of(std::string_view text, size_t columns) {
  size_t end = 0;
  while (end < text.size() && (columns > 0 || !begins_letter(text[end]))) {
    if (begins_letter(text[end])) --columns;
    ++end;
  }
  return end;
}

std::string cut(const std::string& cell, size_t width) {
  if (columns_of(cell) <= width) return cell;
  return cell.substr(0, bytes_of(cell, width - 2)) + "..";
}

/// Returns the byte at which a word that is too long is broken.
size_t break_of(const std::string& word, size_t width) {
  const size_t end = bytes_of(word, width);
  const size_t mark = word.find_last_of("./_-,", end - 1);
  return mark != std::string::npos && mark + 1 > end / 2 ? mark + 1 : end;
}

size_t longest_word(const std::string& text) {
  std::istringstream words(text);
  size_t longest = 0;
  for (std::string word; words >> word;) longest = std::max(longest, columns_of(word));
  return longest;
}

struct Layout {
  std::vector<size_t> widths{};

  [[nodiscard]] size_t sum() const {
    size_t all = 2 * (widths.size() - 1);
    for (const size_t width : widths) all += width;
    return all;
  }
};

Layout natural(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
               bool whole_heads) {
  Layout layout;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& head = columns[i].head;
    size_t width = whole_heads ? columns_of(head) : longest_word(head);
    for (const auto& row : rows) width = std::max(width, columns_of(row[i]));
    layout.widths.push_back(width);
  }
  return layout;
}

/// Takes what is too much from the widest column of text, again and again.
void narrow(const std::vector<TableColumn>& columns, Layout& layout, size_t width) {
  for (size_t sum = layout.sum(); sum > width; --sum) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i)
      if (!columns[i].figure &&
          layout.widths[i] > std::max(kLeast, longest_word(columns[i].head)) &&
          (widest == columns.size() || layout.widths[i] > layout.widths[widest]))
        widest = i;
    if (widest == columns.size()) return;
    --layout.widths[widest];
  }
}

std::string padded(const std::string& text, size_t width, bool right) {
  const size_t columns = columns_of(text);
  const std::string gap(width > columns ? width - columns : 0, ' ');
  return right ? gap + text : text + gap;
}

/// Formats one row; the cells of heads stand at the bottom of their lines.
std::string row_text(const std::vector<TableColumn>& columns, const Layout& layout,
                     const std::vector<std::vector<std::string>>& cells, bool heads) {
  size_t height = 1;
  for (const auto& cell : cells) height = std::max(height, cell.size());
  std::string text;
  for (size_t line = 0; line < height; ++line) {
    std::string all;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t above = heads ? height - cells[i].size() : 0;
      const bool empty = line < above || line - above >= cells[i].size();
      all += (i == 0 ? "" : "  ") + padded(empty ? std::string() : cells[i][line - above],
                                           layout.widths[i], columns[i].figure);
    }
    text += all.substr(0, all.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string head_text(const std::vector<TableColumn>& columns, const Layout& layout) {
  std::vector<std::vector<std::string>> cells;
  for (size_t i = 0; i < columns.size(); ++i)
    cells.push_back(cell_lines(columns[i].head, layout.widths[i]));
  return row_text(columns, layout, cells, true);
}

std::string line_text(const std::vector<TableColumn>& columns, const Layout& layout,
                      const TableRow& row) {
  std::vector<std::vector<std::string>> cells;
  for (size_t i = 0; i < columns.size(); ++i)
    cells.push_back(columns[i].whole ? cell_lines(row[i], layout.widths[i])
                                     : std::vector{cut(row[i], layout.widths[i])});
  return row_text(columns, layout, cells, false);
}

std::string in_columns(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
                       const Layout& layout) {
  std::string text = head_text(columns, layout);
  for (const auto& row : rows) text += line_text(columns, layout, row);
  return text;
}

/// Formats each row without its last cell, which stands below it.
std::string with_last_below(std::vector<TableColumn> columns, const std::vector<TableRow>& rows,
                            const Layout& layout, size_t width) {
  const auto below = [width](const std::string& cell) {
    std::string text;
    if (cell.empty()) return text;
    for (const auto& line : cell_lines(cell, width - 2)) text += "  " + line + '\n';
    return text;
  };
  const std::string last = columns.back().head;
  columns.pop_back();
  std::string text = head_text(columns, layout) + below(last);
  for (const auto& row : rows) text += line_text(columns, layout, row) + below(row.back());
  return text;
}

std::string in_blocks(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
                      size_t width) {
  size_t heads = 0;
  for (const auto& column : columns) heads = std::max(heads, columns_of(column.head));
  const size_t available = std::max(kLeast, width - std::min(width, heads + 2));
  std::string text;
  for (const auto& row : rows) {
    if (!text.empty()) text += '\n';
    for (size_t i = 0; i < columns.size(); ++i) {
      std::string head = columns[i].head;
      for (const auto& line : cell_lines(row[i], available)) {
        const std::string all = padded(head, heads, false) + "  " + line;
        text += all.substr(0, all.find_last_not_of(' ') + 1) + '\n';
        head.clear();
      }
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> cell_lines(const std::string& text, size_t width) {
  if (columns_of(text) <= width) return {text};
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) lines.push_back(line);
    line.clear();
  };
  for (std::string word; words >> word;) {
    if (columns_of(line) + 1 + columns_of(word) > width) end_line();
    while (columns_of(word) > width) {
      const size_t end = break_of(word, width);
      lines.push_back(word.substr(0, end));
      word.erase(0, end);
    }
    line += (line.empty() ? "" : " ") + word;
  }
  end_line();
  return lines;
}

std::string text_list(const std::vector<ListEntry>& entries, size_t indent, size_t width) {
  constexpr size_t kTexts = 30;
  size_t names = 0;
  for (const auto& entry : entries) names = std::max(names, columns_of(entry.name));
  const bool below = width < indent + names + 2 + kTexts;
  const size_t start = indent + (below ? 4 : names + 2);
  std::string all;
  for (const auto& [name, text] : entries) {
    all += std::string(indent, ' ') +
           (below ? name + '\n' + std::string(start, ' ') : padded(name, names + 2, false)) +
           (width == kAnyWidth ? text : wrapped(text, width, start, start)) + '\n';
  }
  return all;
}

std::string text_table(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
                       size_t width) {
  Layout layout = natural(columns, rows, /*whole_heads=*/true);
  if (layout.sum() > width) {
    layout = natural(columns, rows, /*whole_heads=*/false);
    narrow(columns, layout, width);
  }
  if (layout.sum() <= width) return in_columns(columns, rows, layout);
  if (columns.size() > 1 && columns.back().whole) {
    const std::vector shorter(columns.begin(), columns.end() - 1);
    Layout rest = natural(shorter, rows, /*whole_heads=*/false);
    narrow(shorter, rest, width);
    if (rest.sum() <= width) return with_last_below(columns, rows, rest, width);
  }
  return in_blocks(columns, rows, width);
}

}  // namespace tare
