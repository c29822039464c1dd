// Decodes WebP files with libwebp.
#include <webp/decode.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tare/base/error.h"
#include "tare/transform/picture.h"

namespace tare {
namespace {

constexpr const char* kWhere = "transform.decode_webp";

[[noreturn]] void refuse(const std::string& name, const char* part, std::string_view problem) {
  throw FormatError(kWhere, name, part, problem);
}

const char* text_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is not enough memory to decode it";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "has a feature that libwebp does not read";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file is cut short";
    default:
      return "is damaged";
  }
}

// The container says how many bytes follow its first eight.
bool is_cut(std::span<const std::byte> bytes) {
  constexpr size_t kSizeAt = 4, kBehindSize = 8;
  if (bytes.size() < kBehindSize) return true;
  uint64_t size = 0;
  for (size_t i = 0; i < 4; ++i) size |= std::to_integer<uint64_t>(bytes[kSizeAt + i]) << (8 * i);
  return size + kBehindSize > bytes.size();
}

double linear(double value) {
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}
double encoded(double light) {
  return light <= 0.0031308 ? light * 12.92 : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
}

// A part of the light of a transparent pixel, as libpng lays one over black.
uint8_t dimmed(uint8_t value, uint8_t alpha) {
  if (alpha == 255) return value;
  return static_cast<uint8_t>(std::lround(255 * encoded(linear(value / 255.0) * alpha / 255.0)));
}

Picture over_black(const Picture& rgba) {
  Picture result = empty_picture(3, rgba.height, rgba.width);
  const uint8_t* in = rgba.pixels.get();
  uint8_t* out = result.pixels.get();
  for (int64_t i = 0; i < rgba.height * rgba.width; ++i, in += 4)
    for (int64_t c = 0; c < 3; ++c) *out++ = dimmed(in[c], in[3]);
  return result;
}

}  // namespace

Picture decode_webp_picture(std::span<const std::byte> bytes, const std::string& name) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config))
    refuse(name, "header", "cannot be read: libwebp has another version than Tare was built for");
  if (is_cut(bytes)) refuse(name, "header", text_of(VP8_STATUS_NOT_ENOUGH_DATA));
  const VP8StatusCode header = WebPGetFeatures(data, bytes.size(), &config.input);
  if (header != VP8_STATUS_OK) refuse(name, "header", text_of(header));
  if (config.input.has_animation)
    refuse(name, "header", "is that of an animation, and only still pictures are read");
  const int64_t height = config.input.height, width = config.input.width;
  check_pixels(kWhere, name, height, width);
  const bool transparent = config.input.has_alpha != 0;
  Picture picture = empty_picture(transparent ? 4 : 3, height, width);
  config.output.colorspace = transparent ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = picture.pixels.get(),
                          .stride = static_cast<int>(width * picture.channels),
                          .size = static_cast<size_t>(picture.channels * height * width)};
  const VP8StatusCode status = WebPDecode(data, bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) refuse(name, "pixels", text_of(status));
  return transparent ? over_black(picture) : std::move(picture);
}

}  // namespace tare
