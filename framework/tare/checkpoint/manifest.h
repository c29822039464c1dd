// JSON manifests of checkpoints and bundles: parsed within limits, with a checksum of themselves.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tare/checkpoint/digest.h"

namespace tare::checkpoint {

inline constexpr int64_t kMaxManifestBytes = int64_t{16} << 20;  ///< 16 MiB
inline constexpr int64_t kMaxManifestDepth = 32;        ///< of mappings and lists in one another
inline constexpr int64_t kMaxManifestValues = 100'000;  ///< 16 MiB of `{},` would take 0.4 GB

/// Returns XXH3-64 as 16 lower-case hexadecimal digits; more than 20 GB/s on one core. Detects
/// accidents, not forgeries.
[[nodiscard]] std::string hash(std::span<const std::byte> bytes);
/// Returns XXH3-64 of the bytes of a text.
[[nodiscard]] std::string hash(std::string_view text);

/// Parses a JSON object of at most kMaxManifestBytes, kMaxManifestDepth levels and
/// kMaxManifestValues values, in which no key is repeated. Throws FormatError(operation, path,
/// part) for anything else.
[[nodiscard]] nlohmann::json parse_object(std::string_view text, std::string_view operation,
                                          const std::filesystem::path& path,
                                          const std::string& part);

/// Returns the manifest as text, with a checksum of all that follows as its first entry. `manifest`
/// must not have a key "checksum".
[[nodiscard]] std::string seal(const nlohmann::json& manifest);
/// Verifies the checksum and parses the rest. Throws FormatError.
[[nodiscard]] nlohmann::json unseal(std::string_view text, std::string_view operation,
                                    const std::filesystem::path& path, const std::string& part);

/// Returns the digest in the form of a manifest, see digest_of().
[[nodiscard]] nlohmann::json to_json(const Digest& digest);
/// Reads a digest; `part` names the field in messages. Throws FormatError.
[[nodiscard]] Digest digest_from_json(const nlohmann::json& json, std::string_view operation,
                                      const std::filesystem::path& path, const std::string& part);

/// Returns the versions of this build, e.g. "0.1.0" and "2.11.0".
[[nodiscard]] std::string tare_version();
[[nodiscard]] std::string libtorch_version();  ///< LibTorch's version, as tare_version() describes

}  // namespace tare::checkpoint
