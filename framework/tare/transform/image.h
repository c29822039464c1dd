// PNG files to tensors and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tare {

/// Bounds height * width, and the size of a file.
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;
inline constexpr int64_t kMaxImageFileBytes = int64_t{256} << 20;  ///< 256 MiB

/// Decodes a PNG to uint8 [channels, height, width]. `channels`: 1 (grey), 3 (RGB), or 0 for the
/// file's own. Palettes become RGB, 16 bits become 8, transparency is composited over black. 8-bit
/// values are returned as stored, unless the file declares a gamma other than sRGB's. `name` is for
/// messages. Throws FormatError for an invalid PNG or one with more than kMaxImagePixels,
/// ConfigError for another number of channels. `stored_channels`, where given, receives 1 or 3,
/// what the file itself has.
[[nodiscard]] at::Tensor decode_png(std::span<const std::byte> bytes, const std::string& name,
                                    int64_t channels = 0, int64_t* stored_channels = nullptr);

/// Reads and decodes a PNG file. Throws as decode_png, and IoError.
[[nodiscard]] at::Tensor read_png(const std::filesystem::path& path, int64_t channels = 0,
                                  int64_t* stored_channels = nullptr);

/// Returns uint8 [1 or 3, height, width] as the bytes of an 8-bit PNG file. Throws ShapeError.
[[nodiscard]] std::string encode_png(const at::Tensor& image);

/// Writes the image as a PNG file, atomically. Throws ShapeError, IoError.
void write_png(const std::filesystem::path& path, const at::Tensor& image);

/// Resizes uint8 [channels, height, width] as the Resize transform does and rounds to uint8.
[[nodiscard]] at::Tensor resize_image(const at::Tensor& image, int64_t height, int64_t width);

}  // namespace tare
