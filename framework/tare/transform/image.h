// Picture files (PNG, JPEG, WebP) to tensors, and tensors to PNG files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "tare/transform/image_limits.h"

namespace tare {

/// Decodes a PNG, JPEG or WebP file, whichever its first bytes say, to uint8 [channels, height,
/// width]. `channels`: 1 (grey), 3 (RGB), or 0 for the file's own. A colour becomes grey by the
/// weights of ITU-R BT.601, as in Pillow; transparent pixels are laid over black. A JPEG is decoded
/// with the accurate inverse DCT and smooth upsampling; its EXIF orientation is not applied, and
/// CMYK becomes RGB. `name` is for messages. Throws FormatError for another or a damaged file, an
/// animation, or more than kMaxImagePixels; ConfigError for another number of channels.
/// `stored_channels`, where given, receives 1 or 3, what the file itself has.
[[nodiscard]] at::Tensor decode_image(std::span<const std::byte> bytes, const std::string& name,
                                      int64_t channels = 0, int64_t* stored_channels = nullptr);

/// Reads and decodes a PNG, JPEG or WebP file. Throws as decode_image, and IoError.
[[nodiscard]] at::Tensor read_image(const std::filesystem::path& path, int64_t channels = 0,
                                    int64_t* stored_channels = nullptr);

/// Decodes a PNG as decode_image() does. Palettes become RGB, 16 bits become 8. 8-bit values are
/// returned as stored, unless the file declares a gamma other than sRGB's. Throws as decode_image,
/// also for a file of another format.
[[nodiscard]] at::Tensor decode_png(std::span<const std::byte> bytes, const std::string& name,
                                    int64_t channels = 0, int64_t* stored_channels = nullptr);

/// Reads and decodes a PNG file. Throws as decode_png, and IoError.
[[nodiscard]] at::Tensor read_png(const std::filesystem::path& path, int64_t channels = 0,
                                  int64_t* stored_channels = nullptr);

/// Returns uint8 [1 or 3, height, width] as the bytes of an 8-bit PNG file. Throws ShapeError.
[[nodiscard]] std::string encode_png(const at::Tensor& image);

/// Writes the image as a PNG file, atomically. Throws ShapeError, IoError.
void write_png(const std::filesystem::path& path, const at::Tensor& image);

/// Resizes uint8 [channels, height, width] as the transform Resize does and rounds to uint8. With
/// `antialias` the result equals that of Pillow's Image.resize(..., BILINEAR). `fit`: see Resize.
/// Throws ShapeError, and ConfigError for another `fit`.
[[nodiscard]] at::Tensor resize_image(const at::Tensor& image, int64_t height, int64_t width,
                                      bool antialias = true, const std::string& fit = "stretch");

}  // namespace tare
