// Samples of several inputs for a bundle, in a safetensors file. Internal.
#pragma once

#include <filesystem>

#include "tare/data/batch.h"
#include "tare/inference/bundle.h"

namespace tare::cli {

/// Returns the inputs of a file of tensors, in the order of the model's: each is [samples, ...],
/// under the name that the bundle has for it; the first may also be called `input`. Throws IoError;
/// FormatError for a file that is none, and for an input that is missing, is not one of the model,
/// or has another number of samples.
[[nodiscard]] Batch tensors_in(const std::filesystem::path& path, const BundleManifest& manifest);

}  // namespace tare::cli
