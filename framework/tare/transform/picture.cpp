// What the formats of pictures have in common: choice of the decoder, channels and planes.
#include "tare/transform/picture.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"
#include "tare/transform/image_limits.h"
#include "tare/transform/resample.h"

namespace tare {
namespace {

constexpr const char* kWhere = "transform.decode_image";

bool starts_with(std::span<const std::byte> bytes, size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

// Returns the luminance of ITU-R BT.601, computed with 16 bits of fraction and rounded, as Pillow
// does for its mode "L".
uint8_t grey_of(const uint8_t* rgb) {
  constexpr uint32_t kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 0x8000;
  return static_cast<uint8_t>((rgb[0] * kRed + rgb[1] * kGreen + rgb[2] * kBlue + kHalf) >> 16);
}

Picture with_channels(Picture given, int64_t channels) {
  if (channels == 0 || channels == given.channels) return given;
  Picture result = empty_picture(channels, given.height, given.width);
  result.stored_channels = given.stored_channels;
  const uint8_t* in = given.pixels.get();
  uint8_t* out = result.pixels.get();
  const int64_t pixels = given.height * given.width;
  if (channels == 1)
    for (int64_t i = 0; i < pixels; ++i, in += 3) *out++ = grey_of(in);
  else
    for (int64_t i = 0; i < pixels; ++i, out += 3) std::fill_n(out, 3, *in++);
  return result;
}

}  // namespace

Picture empty_picture(int64_t channels, int64_t height, int64_t width) {
  return {.channels = channels,
          .height = height,
          .width = width,
          .pixels = std::make_unique_for_overwrite<uint8_t[]>(
              static_cast<size_t>(channels * height * width)),
          .stored_channels = channels};
}

std::string_view format_of(std::span<const std::byte> bytes) {
  if (starts_with(bytes, 0, "\x89PNG\r\n\x1a\n")) return "PNG";
  if (starts_with(bytes, 0, "\xff\xd8\xff")) return "JPEG";
  if (starts_with(bytes, 0, "RIFF") && starts_with(bytes, 8, "WEBP")) return "WebP";
  return "";
}

std::string_view format_named_by(const std::filesystem::path& path) {
  const std::string extension = lower_case(path.extension().string());
  if (extension == ".png") return "PNG";
  if (extension == ".jpg" || extension == ".jpeg") return "JPEG";
  return extension == ".webp" ? "WebP" : "";
}

Picture decode_picture(std::span<const std::byte> bytes, const std::string& name,
                       int64_t channels) {
  if (channels != 0 && channels != 1 && channels != 3)
    throw ConfigError(kWhere, "channels", "is not a number of channels",
                      "1 (grey), 3 (RGB), 0 (as in the file)", std::to_string(channels));
  if (bytes.empty()) throw FormatError(kWhere, name, "header", "is missing: the file is empty");
  const std::string_view format = format_of(bytes);
  if (format == "PNG") return with_channels(decode_png_picture(bytes, name), channels);
  if (format == "JPEG") return with_channels(decode_jpeg_picture(bytes, name), channels);
  if (format == "WebP") return with_channels(decode_webp_picture(bytes, name), channels);
  throw FormatError(kWhere, name, "header", "is not that of a PNG, JPEG or WebP file");
}

Picture read_picture(const std::filesystem::path& path, int64_t channels) {
  const std::string bytes = io::read_text(path, kMaxImageFileBytes);
  return decode_picture(std::as_bytes(std::span(bytes)), path.string(), channels);
}

void check_pixels(const char* where, const std::string& name, int64_t height, int64_t width) {
  if (height * width > kMaxImagePixels)
    throw FormatError(where, name, "size",
                      std::to_string(width) + " x " + std::to_string(height) +
                          " pixels are more than " + std::to_string(kMaxImagePixels) +
                          ", which is the limit");
}

void write_planes(const Picture& picture, uint8_t* out) {
  const int64_t pixels = picture.height * picture.width, channels = picture.channels;
  const uint8_t* in = picture.pixels.get();
  if (channels == 1) {
    std::copy_n(in, pixels, out);
    return;
  }
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < pixels; ++i) *out++ = in[i * channels + c];
}

void write_resized(const Picture& picture, int64_t height, int64_t width, const std::string& fit,
                   uint8_t* out) {
  if (picture.height == height && picture.width == width) return write_planes(picture, out);
  const int64_t pixels = picture.height * picture.width;
  const auto planes =
      std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(picture.channels * pixels));
  write_planes(picture, planes.get());
  const Sides sides = sides_of(fit, picture.height, picture.width, height, width);
  const Filter down(sides.down), across(sides.across);
  for (int64_t c = 0; c < picture.channels; ++c)
    resample_bytes(planes.get() + c * pixels, out + c * height * width, down, across);
}

}  // namespace tare
