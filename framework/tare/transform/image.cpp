// Pictures as tensors: decoded, encoded as PNG, and resized.
#include "tare/transform/image.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/transform/picture.h"
#include "tare/transform/png_block.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

// Planes [channels, height, width] to interleaved pixels [height, width, channels].
std::vector<uint8_t> interleaved(const at::Tensor& image) {
  const int64_t channels = image.size(0), pixels = image.size(1) * image.size(2);
  const at::Tensor planes = image.contiguous();
  const uint8_t* in = planes.const_data_ptr<uint8_t>();
  std::vector<uint8_t> out(static_cast<size_t>(channels * pixels));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < pixels; ++i) out[static_cast<size_t>(i * channels + c)] = *in++;
  return out;
}

void check_image(std::string_view where, const at::Tensor& image) {
  if (image.defined() && image.device().is_cpu() && image.dim() == 3 &&
      image.scalar_type() == at::kByte && image.numel() > 0)
    return;
  throw ShapeError(
      where, "uint8 [channels, height, width] on the host",
      image.defined() ? image.toString() + " " + c10::str(image.sizes()) : "an undefined tensor");
}

at::Tensor as_tensor(const Picture& picture, int64_t* stored_channels) {
  if (stored_channels) *stored_channels = picture.stored_channels;
  at::Tensor planes = at::empty({picture.channels, picture.height, picture.width}, at::kByte);
  write_planes(picture, planes.mutable_data_ptr<uint8_t>());
  return planes;
}

}  // namespace

at::Tensor decode_image(std::span<const std::byte> bytes, const std::string& name, int64_t channels,
                        int64_t* stored_channels) {
  return as_tensor(decode_picture(bytes, name, channels), stored_channels);
}

at::Tensor read_image(const std::filesystem::path& path, int64_t channels,
                      int64_t* stored_channels) {
  return as_tensor(read_picture(path, channels), stored_channels);
}

at::Tensor decode_png(std::span<const std::byte> bytes, const std::string& name, int64_t channels,
                      int64_t* stored_channels) {
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  const size_t compared = std::min(bytes.size(), kSignature.size());
  if (compared > 0 && std::memcmp(bytes.data(), kSignature.data(), compared) != 0)
    throw FormatError("transform.decode_png", name, "header", "is not that of a PNG file");
  return decode_image(bytes, name, channels, stored_channels);
}

at::Tensor read_png(const std::filesystem::path& path, int64_t channels, int64_t* stored_channels) {
  const std::string bytes = io::read_text(path, kMaxImageFileBytes);
  return decode_png(std::as_bytes(std::span(bytes)), path.string(), channels, stored_channels);
}

std::string encode_png(const at::Tensor& image) {
  check_image("transform.encode_png", image);
  if (image.size(0) != 1 && image.size(0) != 3)
    throw ShapeError("transform.encode_png", "1 or 3 channels", std::to_string(image.size(0)));
  Png png;
  png.image.height = static_cast<png_uint_32>(image.size(1));
  png.image.width = static_cast<png_uint_32>(image.size(2));
  png.image.format = image.size(0) == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const std::vector<uint8_t> rows = interleaved(image);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png.image);
  std::string file(size, '\0');
  if (!png_image_write_to_memory(&png.image, file.data(), &size, 0, rows.data(), 0, nullptr))
    throw ShapeError("transform.encode_png", "an image that libpng can write", png.image.message);
  file.resize(size);
  return file;
}

void write_png(const std::filesystem::path& path, const at::Tensor& image) {
  io::write_atomically(path, encode_png(image));
}

at::Tensor resize_image(const at::Tensor& image, int64_t height, int64_t width, bool antialias,
                        const std::string& fit) {
  check_image("transform.resize_image", image);
  const Transforms resize{
      Resize{.height = height, .width = width, .round = true, .antialias = antialias, .fit = fit}};
  const at::Tensor scaled = resize.apply(image.contiguous().unsqueeze(0), {}, false);
  at::Tensor result = at::empty({image.size(0), height, width}, at::kByte);
  const float* in = scaled.const_data_ptr<float>();
  uint8_t* out = result.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < result.numel(); ++i)
    out[i] = static_cast<uint8_t>(std::lround(in[i] * 255));
  return result;
}

}  // namespace tare
