// The texts of a table that a coding was not learnt on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/transform/row_coding.h"

namespace tare {

/// Counts the texts of a column of categories that the training split does not have.
struct UnknownTexts {
  std::string column{};  ///< its name
  int64_t fields = 0;    ///< with such a text
  std::string first{};   ///< one of the texts
};

/// Returns the columns of a table with texts that the coding does not know, in the order of a
/// sample. A column that the table lacks is skipped.
[[nodiscard]] std::vector<UnknownTexts> unknown_texts(const RowCoding& coding,
                                                      const TableText& table);

}  // namespace tare
