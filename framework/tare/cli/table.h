// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace tare::cli {

struct Column {
  std::string head{};
  bool figure = false;  ///< flush right
};
using Row = std::vector<std::string>;  ///< a cell for each column

/// A line of heads, then one for each row, as wide as their longest cell. Where a line would be
/// longer than `width`, cells of the widest columns of text are cut, to 8 columns at least, and end
/// with "..".
inline constexpr size_t kAnyWidth = static_cast<size_t>(-1);
[[nodiscard]] std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                                size_t width = kAnyWidth);

}  // namespace tare::cli
