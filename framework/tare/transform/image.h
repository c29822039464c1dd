// PNG files to tensors and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tare {

inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;  ///< height * width that is accepted
inline constexpr int64_t kMaxImageFileBytes = int64_t{256}
                                              << 20;  ///< size of a file that is accepted

/// Decodes a PNG to uint8 [channels, height, width]. `channels`: 1 (grey), 3 (RGB), or 0 for what
/// the file has. Palettes, 16 bits and interlacing are resolved, transparency is laid over black.
/// 8-bit values come out as they are stored, unless the file declares another gamma than sRGB's.
/// `name` is for messages. Throws FormatError for what is no valid PNG or has more than
/// kMaxImagePixels, ConfigError for another number of channels.
[[nodiscard]] at::Tensor decode_png(std::span<const std::byte> bytes, const std::string& name,
                                    int64_t channels = 0);

/// Reads and decodes a PNG file. Throws also IoError.
[[nodiscard]] at::Tensor read_png(const std::filesystem::path& path, int64_t channels = 0);

/// Writes uint8 [1 or 3, height, width] as an 8-bit PNG, whole or not at all. Throws ShapeError,
/// IoError.
void write_png(const std::filesystem::path& path, const at::Tensor& image);

/// uint8 [C, H, W] resized as the Resize transform does, rounded back to uint8.
[[nodiscard]] at::Tensor resize_image(const at::Tensor& image, int64_t height, int64_t width);

}  // namespace tare
