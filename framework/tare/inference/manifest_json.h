// The manifest of a bundle as JSON text, for files of other formats. bundle.cpp defines it.
// Internal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tare/checkpoint/digest.h"
#include "tare/inference/bundle.h"

namespace tare {

/// Is the key of the manifest in the metadata of files that are no bundles.
inline constexpr const char* kManifestKey = "tare.manifest";

/// Returns the manifest as a bundle has it, see docs/formats.md, without the seal of a bundle;
/// `digest` has the hashes of the tensors.
[[nodiscard]] std::string manifest_json(const BundleManifest& manifest,
                                        const checkpoint::Digest& digest);

/// Reads what manifest_json() returns, for a file at `path`. Throws FormatError as open_bundle().
[[nodiscard]] BundleManifest manifest_from_json(std::string_view text,
                                                const std::filesystem::path& path);

}  // namespace tare
