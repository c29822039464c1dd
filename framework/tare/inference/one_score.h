// Bundles of models that have one output for two classes. Internal.
#pragma once

#include "tare/inference/bundle.h"

namespace tare {

/// Whether the model has one output for two labels: the probability of the second, as a training
/// with bce_with_logits on two classes leaves it.
[[nodiscard]] bool has_one_score(const BundleManifest& manifest);

}  // namespace tare
