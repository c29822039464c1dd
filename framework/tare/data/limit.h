// Fewer batches of a data set, for quick tries.
#pragma once

#include <cstdint>

#include "tare/config/field.h"
#include "tare/data/splits.h"

namespace tare {

/// Bounds the batches of an epoch, for a quick try of a training.
struct LimitOptions {
  int64_t train_batches = 0;  ///< at most, of the training split; 0: all
  int64_t valid_batches = 0;  ///< at most, of the validation split; 0: all
  bool operator==(const LimitOptions&) const = default;
  /// Whether anything is bounded.
  explicit operator bool() const { return train_batches > 0 || valid_batches > 0; }
};
void visit_fields(auto& visit, LimitOptions& o) {
  visit("train_batches", o.train_batches, config::at_least(0));
  visit("valid_batches", o.valid_batches, config::at_least(0));
}

/// Returns the splits with as many samples of training and validation as the limit has batches of
/// `batch` samples, or with all where a split has no more. The samples are spread evenly over the
/// split, the same ones for the same sizes. The test split stays. Throws ConfigError for a batch
/// below 1 and for a limit below 0.
[[nodiscard]] Splits limited(const Splits& data, const LimitOptions& limit, int64_t batch);

/// Returns splits to see whether a model can learn some samples by heart: at most `batches` batches
/// of `batch` samples of the training split, spread evenly over it, without random transforms, for
/// training and validation. Their order is that of a Learner without `shuffle`. The test split
/// stays. Throws ConfigError for numbers below 1, StateError without a training split.
[[nodiscard]] Splits overfitted(const Splits& data, int64_t batches, int64_t batch);

}  // namespace tare
