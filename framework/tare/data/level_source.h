// LevelSource: what knows the levels of a data set's inputs. Internal.
#pragma once

#include <optional>

#include "tare/data/dataset.h"
#include "tare/data/levels.h"

namespace tare {

/// Is a data set that may know the levels of its inputs, or a decorator of one.
class LevelSource {
 public:
  virtual ~LevelSource() = default;
  /// Returns the levels of the first input before all transforms; unset: they are not known, or
  /// samples are no arrays of two dimensions or more.
  [[nodiscard]] virtual std::optional<Levels> levels() const = 0;
};

/// Returns the levels of a data set's first input before all transforms; unset: not known.
[[nodiscard]] inline std::optional<Levels> levels_of(const Dataset& data) {
  const auto* source = dynamic_cast<const LevelSource*>(&data);
  return source ? source->levels() : std::nullopt;
}

}  // namespace tare
