// The manifest of a bundle as JSON text, for files of other formats. bundle.cpp defines it.
// Internal.
#pragma once

#include <string>

#include "tare/checkpoint/digest.h"
#include "tare/inference/bundle.h"

namespace tare {

/// Returns the manifest as a bundle has it, see docs/formats.md, without the seal of a bundle;
/// `digest` has the hashes of the tensors.
[[nodiscard]] std::string manifest_json(const BundleManifest& manifest,
                                        const checkpoint::Digest& digest);

}  // namespace tare
