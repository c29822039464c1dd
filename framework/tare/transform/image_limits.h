// The limits of picture files, and the extensions of their names, for every reader.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tare {

/// Bounds height * width, and the size of a file.
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;
inline constexpr int64_t kMaxImageFileBytes = int64_t{256} << 20;  ///< 256 MiB

/// Lists the extensions of the files that read_image() takes, in lower case.
inline constexpr std::array<std::string_view, 4> kImageExtensions{".png", ".jpg", ".jpeg", ".webp"};

}  // namespace tare
