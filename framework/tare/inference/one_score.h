// Bundles of models whose outputs are probabilities by themselves: one for two classes, or one for
// each label. Internal.
#pragma once

#include "tare/inference/bundle.h"

namespace tare {

/// Whether the model has one output for two labels: the probability of the second, as a training
/// with bce_with_logits on two classes leaves it.
[[nodiscard]] bool has_one_score(const BundleManifest& manifest);

/// Whether each output is the probability of a label of its own, so that a sample may have several
/// labels or none.
[[nodiscard]] bool has_several_labels(const BundleManifest& manifest);

}  // namespace tare
