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

/// A line of heads, then one for each row, as wide as their longest cell.
[[nodiscard]] std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows);

}  // namespace tare::cli
