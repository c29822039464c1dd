// PaddingSource: what knows to which lengths a data set pads its batches. Internal.
#pragma once

#include <cstdint>

#include "tare/data/dataset.h"

namespace tare {

/// Is a data set that may pad its batches, or a decorator of one.
class PaddingSource {
 public:
  virtual ~PaddingSource() = default;
  /// Returns the number of which the padded length of every batch is a multiple, >= 1.
  [[nodiscard]] virtual int64_t padded_to() const = 0;
};

/// Returns the length of a batch whose longest sample has this one.
[[nodiscard]] inline int64_t padded_length(const Dataset& data, int64_t longest) {
  const auto* source = dynamic_cast<const PaddingSource*>(&data);
  const int64_t multiple = source ? source->padded_to() : 1;
  return (longest + multiple - 1) / multiple * multiple;
}

}  // namespace tare
