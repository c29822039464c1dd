// Train, validation and test splits of a data set, and the folds of a cross-validation.
#pragma once

#include <cstdint>

#include "tare/data/dataset.h"

namespace tare {

/// The data of a Learner. Any of them may be null.
struct Splits {
  DatasetPtr train{};
  DatasetPtr valid{};
  DatasetPtr test{};
};

/// Sizes of the splits: up to 1 a fraction of the data set, above 1 a (whole) number of samples; 0:
/// no such split.
struct SplitSizes {
  double train = 0.8;
  double valid = 0.2;
  double test = 0;
  bool operator==(const SplitSizes&) const = default;
};

/// Splits by a permutation that depends only on `seed` and the size of the data set. Random
/// transforms of `data` act on the training split only. Throws ConfigError for sizes that are
/// negative, not whole, together larger than the data set, or that round to no samples.
[[nodiscard]] Splits split(const DatasetPtr& data, const SplitSizes& sizes = {}, uint64_t seed = 0);

/// Fold `index` of `count` is the validation split, the other folds are the training split; no test
/// split. Each sample is in the validation split of exactly one fold. Throws ConfigError unless 2
/// <= count
/// <= size and 0 <= index < count.
[[nodiscard]] Splits fold(const DatasetPtr& data, int64_t count, int64_t index, uint64_t seed = 0);

}  // namespace tare
