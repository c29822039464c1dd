// Recognises safetensors files whose header cannot be read, such as truncated ones. Internal.
#pragma once

#include <filesystem>
#include <string>

namespace tare {

/// Returns "bundle" or "safetensors" for a file that begins as one; "" for any other. Throws
/// IoError.
[[nodiscard]] std::string kind_of_damaged(const std::filesystem::path& path);

}  // namespace tare
