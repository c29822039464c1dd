// Train, validation and test splits of a data set, and the folds of a cross-validation.
#pragma once

#include <cstdint>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

/// Holds the data of a Learner. Any of them may be null.
struct Splits {
  DatasetPtr train{};  ///< what a fit learns from
  DatasetPtr valid{};  ///< what each epoch is validated on
  DatasetPtr test{};   ///< what validate() and get_preds() use when asked for it
};

/// Sets the sizes of the splits: up to 1 a fraction of the data set, above 1 a (whole) number of
/// samples; 0: no such split.
struct SplitSizes {
  double train = 0.8;  ///< of the training split
  double valid = 0.2;  ///< of the validation split
  double test = 0;     ///< of the test split
  bool operator==(const SplitSizes&) const = default;
};

/// Sets how a data set is split.
struct SplitOptions {
  /// Every class has its share of each part, to within one sample, and keeps at least one sample in
  /// the training split where that is possible. The targets must be class labels.
  bool stratify = false;
};

/// Splits by a permutation that depends only on `seed` and the size of the data set; a stratified
/// split also depends on the labels. Random transforms of `data` act on the training split only.
/// Throws ConfigError for sizes that are negative, not whole, together larger than the data set, or
/// that round to no samples, and for a stratified split of data without class labels.
[[nodiscard]] Splits split(const DatasetPtr& data, const SplitSizes& sizes = {}, uint64_t seed = 0,
                           const SplitOptions& options = {});

/// Uses fold `index` of `count` as the validation split and the other folds as the training split;
/// no test split. Each sample is in the validation split of exactly one fold. Throws ConfigError
/// unless 2 <= count <= size and 0 <= index < count, and for stratified folds of data without class
/// labels.
[[nodiscard]] Splits fold(const DatasetPtr& data, int64_t count, int64_t index, uint64_t seed = 0,
                          const SplitOptions& options = {});

/// Returns the indices, ascending, of `count` samples, from 1 to the size of `data`, in which every
/// class has its share to within one sample: the first samples of each class. The targets must be
/// class labels.
[[nodiscard]] std::vector<int64_t> first_of_each_class(const DatasetPtr& data, int64_t count);

/// Whether the targets of `data` are class labels, as a stratified split needs them.
[[nodiscard]] bool has_class_labels(const DatasetPtr& data);

}  // namespace tare
