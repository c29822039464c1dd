// Levels: the range of the numbers of pictures and other arrays, before their transforms. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "tare/transform/transform.h"

namespace tare {

/// Holds the least and the most of some numbers; a value.
struct Levels {
  double least = 0, most = 0;
  bool operator==(const Levels&) const = default;
};

/// Returns the levels of an input [samples, ...] whose samples have two dimensions or more: 0 to 1
/// of uint8, which transforms scale, else those of its finite numbers. Unset: there are none.
[[nodiscard]] std::optional<Levels> levels_of(const at::Tensor& input);

/// Returns what is unusual where numbers of these levels are normalised so, such as a mean of 124
/// for levels from 0 to 1; empty: nothing is.
[[nodiscard]] std::string normalise_warning(const Levels& levels, const Transforms& transforms);
/// Returns what is unusual where a model gets numbers of the levels `now`, and was trained with
/// `then`, as the end of a sentence that begins with the name of the file; empty: nothing is.
[[nodiscard]] std::string levels_warning(const Levels& now, const Levels& then);

}  // namespace tare
