// Adds lengths and masks to sequences.
#include "tare/inference/padded_inputs.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

namespace tare {
namespace {

bool is_padded(const BundleManifest& manifest, const char* name) {
  const auto& more = manifest.more_inputs;
  const bool varies = sample_kind(manifest) == SampleKind::tokens || any_size(manifest).size() == 1;
  return more.size() == 1 && varies && more.front().name == name;
}

int64_t length_of(const BundleManifest& manifest, const at::Tensor& sample) {
  const auto open = any_size(manifest);
  return sample.size(open.empty() ? -1 : 1 + open.front());
}

}  // namespace

bool takes_lengths(const BundleManifest& manifest) {
  if (!is_padded(manifest, "lengths")) return false;
  const BundleInput& second = manifest.more_inputs.front();
  return second.dtype == "int64" && second.sample_shape.empty();
}

bool takes_mask(const BundleManifest& manifest) {
  if (!is_padded(manifest, "mask")) return false;
  const BundleInput& second = manifest.more_inputs.front();
  return second.dtype == "bool" && second.sample_shape.size() == 1;
}

bool fits_one_tensor(const BundleManifest& manifest) {
  return manifest.more_inputs.empty() || takes_lengths(manifest) || takes_mask(manifest);
}

Batch batch_of_one(const BundleManifest& manifest, const at::Tensor& sample) {
  Batch batch(sample);
  const auto add = [&](const at::Tensor& second) {
    batch.inputs.push_back({manifest.more_inputs.front().name, second});
  };
  if (takes_lengths(manifest)) add(at::full({1}, length_of(manifest, sample), at::kLong));
  if (takes_mask(manifest)) add(at::ones({1, length_of(manifest, sample)}, at::kBool));
  return batch;
}

}  // namespace tare
