// Collate functions: how samples become a batch, by name or as a function; and data sets of samples
// that are joined by one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/registry.h"
#include "tare/data/dataset.h"

namespace tare {

/// Joins samples, whose tensors have no sample dimension, to one batch of [samples, ...]. Called by
/// several threads at once. At least one sample; all have the same names.
using Collate = std::function<Batch(const std::vector<Batch>& samples)>;

/// Configures the collate `pad`.
struct PadOptions {
  double value = 0;  ///< of what is added to an input, or to a target that is not a class index
  /// lengths | mask | none: what is added as a further input: "lengths" int64 [samples], or "mask"
  /// bool [samples, longest], true where the sample has an element. Both are of the first input.
  std::string with = "lengths";
  int64_t multiple = 1;  ///< the padded length is a multiple of it, >= 1
};
void visit_fields(auto& visit, PadOptions& o) {
  visit("value", o.value);
  visit("with", o.with, config::one_of({"lengths", "mask", "none"}));
  visit("multiple", o.multiple, config::between(1, 65536));
}

/// Stacks tensors of one shape. Throws ShapeError, naming the tensor, for others.
[[nodiscard]] Batch stack(const std::vector<Batch>& samples);
/// Pads tensors [length, ...] of different lengths at their ends to the longest of the batch; those
/// of one length everywhere are stacked. Class indices of targets are padded with -100, which the
/// losses ignore.
[[nodiscard]] Collate pad(const PadOptions& options = {});

namespace collates {
/// Holds the collate functions by name. A program adds its own:
///   collates::registry().add("pairs", "...", [] { return Collate(join_pairs); });
using Registry = config::Registry<Collate()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace collates

/// Returns a data set of samples in memory, whose tensors have no sample dimension and may have
/// different lengths (their first dimension). `samples`: at least one, all with the same names,
/// dtypes and numbers of dimensions, on the host. sample_shape() is that of the longest. Throws
/// ConfigError for an empty list or an empty function, ShapeError for samples of different layouts.
/// `names`: see Dataset::sample_name(), one for each sample; empty: none has one. `text_length`:
/// see Dataset::text_length().
[[nodiscard]] DatasetPtr sample_dataset(std::vector<Batch> samples, Collate collate,
                                        std::vector<std::string> labels = {},
                                        std::vector<std::string> names = {},
                                        int64_t text_length = 0);

}  // namespace tare
