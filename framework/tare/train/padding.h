// Padding: how long the samples of a fit are, and how much of its batches is padding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tare/data/loader.h"
#include "tare/train/options.h"

namespace tare {

/// Describes the lengths of a training split, and what padding them to the longest of their batch
/// takes. A value.
struct Padding {
  int64_t shortest = 0;  ///< sample, by Dataset::sample_size()
  int64_t longest = 0;   ///< sample; the plan of a fit is of a batch that is as long
  double share = 0;      ///< of all batches of the first epoch that is padding, from 0 to 1
  bool operator==(const Padding&) const = default;
  /// Returns "samples of 12 to 500; 41.3 % of the batches is padding".
  [[nodiscard]] std::string str() const;
};

/// Returns the weights by which a fit samples its training split; null: every sample once. Throws
/// ConfigError, naming `call`, for weights that do not fit, and where there are no labels to
/// balance.
[[nodiscard]] SampleWeights sample_weights(const LearnerOptions& options, const DatasetPtr& train,
                                           const std::string& call);

/// Returns how the loader of a fit makes its batches. `drop_last`: what LearnerOptions::drop_last
/// comes to.
[[nodiscard]] LoaderOptions training_loader(const LearnerOptions& options, bool drop_last,
                                            SampleWeights weights);

/// Returns the padding of a fit with these options; unset: all samples are of one size. Reads no
/// sample. Throws ConfigError as Loader does.
[[nodiscard]] std::optional<Padding> padding_of(const DatasetPtr& train,
                                                const LearnerOptions& options);

}  // namespace tare
