// Models of sequences whose second input says what of the first is padding. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include "tare/data/batch.h"
#include "tare/inference/bundle.h"

namespace tare {

/// Whether the second input is the length of the first, int64 [batch], as the collate function
/// `pad` adds it to sequences.
[[nodiscard]] bool takes_lengths(const BundleManifest& manifest);
/// Whether the second input says which elements of the first there are, likewise.
[[nodiscard]] bool takes_mask(const BundleManifest& manifest);
/// Whether a sample is one tensor: a second input can be computed from it.
[[nodiscard]] bool fits_one_tensor(const BundleManifest& manifest);
/// Returns the batch of one sample, [1, ...], with the second input that the model takes beside it.
[[nodiscard]] Batch batch_of_one(const BundleManifest& manifest, const at::Tensor& sample);

}  // namespace tare
