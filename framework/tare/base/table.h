// Text in columns, no wider than its place.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tare/base/terminal.h"

namespace tare {

/// Describes the title and the layout of a column of text_table().
struct TableColumn {
  std::string head{};   ///< the column's title
  bool figure = false;  ///< flush right, and never made narrower than its cells
  bool whole = false;   ///< a cell that is too wide continues in further lines; else it is cut
};
using TableRow = std::vector<std::string>;  ///< a cell for each column

/// Returns a line of heads, then one for each row, in columns as wide as their longest cell. Where
/// a line would be longer than `width`, heads stand in several lines, and columns of text become
/// narrower, the widest first and to 8 columns at least; a cell that is cut ends with "..". If even
/// that is too wide, the cells of the last column, if it is `whole`, stand below their rows; else,
/// or if the others are too wide too, each row becomes a block of lines, one for each cell behind
/// its head, with an empty line between two blocks.
[[nodiscard]] std::string text_table(const std::vector<TableColumn>& columns,
                                     const std::vector<TableRow>& rows, size_t width = kAnyWidth);

/// Holds a name and its explanation, for a list of both.
struct ListEntry {
  std::string name{}, text{};  ///< what the list explains; the explanation
};
/// Returns a line for each entry: its name behind `indent` blanks, and its text in a column of its
/// own, which continues in further lines. Where fewer than 30 columns would be left for the texts,
/// each stands below its name.
[[nodiscard]] std::string text_list(const std::vector<ListEntry>& entries, size_t indent,
                                    size_t width = kAnyWidth);

/// Returns `text` in lines of at most `width` columns, at least one line: broken between words, and
/// inside a word, if possible behind one of "./_-,", where it is longer.
[[nodiscard]] std::vector<std::string> cell_lines(const std::string& text, size_t width);

}  // namespace tare
