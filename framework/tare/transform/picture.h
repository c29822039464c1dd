// Decoded pictures in plain memory: what the decoders of the file formats share. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tare {

/// Holds a decoded picture. Its memory is no tensor's, so that decoding a sample beside a training
/// takes no allocation that a plan would have to know.
struct Picture {
  int64_t channels = 0;  ///< 1 (grey) or 3 (RGB)
  int64_t height = 0, width = 0;
  std::unique_ptr<uint8_t[]> pixels{};  ///< [height, width, channels]
  int64_t stored_channels = 0;          ///< 1 or 3: what the file has
};

/// Returns a picture with memory for its pixels, whose values are not set.
[[nodiscard]] Picture empty_picture(int64_t channels, int64_t height, int64_t width);

/// Returns "PNG", "JPEG" or "WebP" by the first bytes of a file; "": it is none of them.
[[nodiscard]] std::string_view format_of(std::span<const std::byte> bytes);
/// Returns the format that the extension of a path names, in any case of letters; "": none.
[[nodiscard]] std::string_view format_named_by(const std::filesystem::path& path);

/// Decodes a file of one format with the file's own channels. `name` is for messages. Throws
/// FormatError for a damaged, truncated or foreign file, and for more pixels than kMaxImagePixels.
[[nodiscard]] Picture decode_png_picture(std::span<const std::byte> bytes, const std::string& name);
[[nodiscard]] Picture decode_jpeg_picture(std::span<const std::byte> bytes,
                                          const std::string& name);
[[nodiscard]] Picture decode_webp_picture(std::span<const std::byte> bytes,
                                          const std::string& name);
/// Decodes a file of any of the formats, chosen by its first bytes. `channels`: 1 (grey), 3 (RGB),
/// or 0 for the file's own. Throws as above; ConfigError for another number of channels.
[[nodiscard]] Picture decode_picture(std::span<const std::byte> bytes, const std::string& name,
                                     int64_t channels);
/// Reads and decodes a file. Throws as decode_picture, and IoError.
[[nodiscard]] Picture read_picture(const std::filesystem::path& path, int64_t channels);

/// Throws FormatError for a picture of more pixels than kMaxImagePixels. `where`: the operation.
void check_pixels(const char* where, const std::string& name, int64_t height, int64_t width);

/// Writes the picture as planes [channels, height, width] to `out`.
void write_planes(const Picture& picture, uint8_t* out);
/// Writes the picture as planes [channels, height, width] of this size to `out`, resized as by
/// resize_image() where it has another one. `fit`: see Resize.
void write_resized(const Picture& picture, int64_t height, int64_t width, const std::string& fit,
                   uint8_t* out);

}  // namespace tare
