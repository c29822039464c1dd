// What a safetensors file was whose header cannot be read, such as a truncated one. Internal.
#pragma once

#include <filesystem>
#include <string>

namespace tare {

/// Returns "bundle" or "safetensors" for a file that begins as one; "" for any other. Throws
/// IoError.
[[nodiscard]] std::string kind_of_damaged(const std::filesystem::path& path);

}  // namespace tare
