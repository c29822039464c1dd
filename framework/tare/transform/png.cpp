// Decodes PNG files with libpng.
#include <png.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/transform/picture.h"
#include "tare/transform/png_block.h"

namespace tare {
namespace {

constexpr const char* kWhere = "transform.decode_png";

[[noreturn]] void refuse(const std::string& name, std::string part, std::string_view problem) {
  throw FormatError(kWhere, name, std::move(part), problem);
}

// Bits of a pixel as it is stored: the bit depth of IHDR times the samples of its colour type.
// libpng has checked both, but takes unknown chunks in front of IHDR, which the format forbids.
int64_t stored_bits(std::span<const std::byte> png, const std::string& name) {
  constexpr size_t kChunkAt = 12, kDepthAt = 24, kColourTypeAt = 25;
  constexpr std::array kSamples = {1, 0, 3, 1, 2, 0, 4};
  if (std::memcmp(&png[kChunkAt], "IHDR", 4) != 0)
    refuse(name, "header", "IHDR is not the first chunk");
  const auto colour_type = std::to_integer<size_t>(png[kColourTypeAt]);
  return std::to_integer<int64_t>(png[kDepthAt]) * kSamples.at(colour_type);
}

void check_size(const png_image& image, std::span<const std::byte> bytes, const std::string& name) {
  const int64_t height = image.height, width = image.width;
  check_pixels(kWhere, name, height, width);
  const int64_t bits = height * width * stored_bits(bytes, name);
  if (bits / 8 > static_cast<int64_t>(bytes.size()) * kMaxDeflateRatio)
    refuse(name, "size",
           std::to_string(width) + " x " + std::to_string(height) +
               " pixels are more than the compressed file can hold");
}

}  // namespace

Picture decode_png_picture(std::span<const std::byte> bytes, const std::string& name) {
  Png png;
  if (!png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()))
    refuse(name, "header", png.image.message);
  check_size(png.image, bytes, name);
  const int64_t channels = (png.image.format & PNG_FORMAT_FLAG_COLOR) ? 3 : 1;
  png.image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png.image.flags |=
      PNG_IMAGE_FLAG_16BIT_sRGB;  // as 8 bits: without it libpng brightens the picture
  Picture picture = empty_picture(channels, png.image.height, png.image.width);
  const png_color black{0, 0, 0};
  if (!png_image_finish_read(&png.image, &black, picture.pixels.get(), 0, nullptr))
    refuse(name, "pixels", png.image.message);
  return picture;
}

}  // namespace tare
