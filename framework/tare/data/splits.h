// Train, validation and test parts of a data set, and the folds of a cross-validation.
#pragma once

#include <cstdint>

#include "tare/data/dataset.h"

namespace tare {

/// Any of them may be null.
struct Splits {
  DatasetPtr train{};
  DatasetPtr valid{};
  DatasetPtr test{};
};

/// Sizes of the parts: at most 1 is a fraction of the data set, above 1 a count (a whole number). 0
/// leaves a part out.
struct SplitSizes {
  double train = 0.8;
  double valid = 0.2;
  double test = 0;
  bool operator==(const SplitSizes&) const = default;
};

/// Parts by a permutation of the samples that depends on `seed` and the size only. Training samples
/// keep the random transforms of `data`, the others never see them. Throws ConfigError for sizes
/// that are negative, not whole, larger than the data set together, or round to a part without
/// samples.
[[nodiscard]] Splits split(const DatasetPtr& data, const SplitSizes& sizes = {}, uint64_t seed = 0);

/// Fold `index` of `count`: it is the validation part, the others are for training; no test part.
/// Each sample is in the validation part of exactly one fold. Throws ConfigError unless 2 <= count
/// <= size and 0 <= index < count.
[[nodiscard]] Splits fold(const DatasetPtr& data, int64_t count, int64_t index, uint64_t seed = 0);

}  // namespace tare
