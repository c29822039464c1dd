// RowSource: a data set whose samples are rows of a table, with the coding that made them.
#pragma once

#include "tare/data/dataset.h"

namespace tare {

struct RowCoding;

/// Is a data set that may have coded the rows of a table, or a decorator of one.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Returns how rows have become the samples; nullptr: they are not from a table. The data set
  /// owns it.
  [[nodiscard]] virtual const RowCoding* row_coding() const = 0;
};

/// Returns how the rows of a table have become the samples of a data set; nullptr: they are not
/// from a table. The data set owns it.
[[nodiscard]] inline const RowCoding* row_coding_of(const Dataset& data) {
  const auto* source = dynamic_cast<const RowSource*>(&data);
  return source ? source->row_coding() : nullptr;
}

}  // namespace tare
