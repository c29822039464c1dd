// The orientation that a camera stores in a JPEG file. Internal.
#pragma once

#include <cstddef>
#include <span>

namespace tare {

/// Returns the EXIF orientation of a JPEG file (EXIF 2.3, section 4.6.4, tag 0x0112): 1 to 8, where
/// 1 says that the pixels are stored upright. A file without one, or whose EXIF data are damaged,
/// gives 1. Reads no byte beyond the file or beyond the segment of the EXIF data.
[[nodiscard]] int exif_orientation(std::span<const std::byte> jpeg);

}  // namespace tare
