// Downloads by the `curl` program, verified before the file gets its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Describes one file to download, and what it must be.
struct RemoteFile {
  std::string name{};    ///< on disk; a single safe path component
  std::string url{};     ///< http or https
  int64_t bytes = 0;     ///< exact size
  std::string sha256{};  ///< 64 lower-case hexadecimal digits
};

/// Lists a set of files and where they come from: data/<name>.yaml.
struct Manifest {
  std::string name{}, source{}, licence{};  ///< its name; who publishes it; its licence
  std::vector<RemoteFile> files{};          ///< in the order of the file
};

/// Reads a manifest from YAML. Throws ConfigError.
[[nodiscard]] Manifest parse_manifest(std::string_view yaml, const std::string& file);

/// Returns SHA-256 of a file as 64 lower-case hexadecimal digits. Throws IoError.
[[nodiscard]] std::string sha256_of(const std::filesystem::path& path);

/// Downloads `file` into `folder`, created if missing, unless it is there with the right size and
/// hash. On any error nothing is left behind. No shell is used; redirections stay on http and
/// https. Throws IoError with curl's message, or if curl is missing; FormatError for another size
/// or hash.
void download(const RemoteFile& file, const std::filesystem::path& folder);

}  // namespace tare
