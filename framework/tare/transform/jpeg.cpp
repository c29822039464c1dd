// Decodes JPEG files with libjpeg-turbo.
//
// libjpeg reports an error by a call that must not return. Here that call jumps back to the
// function that began the work; neither it nor any function between them has an object with a
// destructor.
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

// jpeglib.h needs <cstdio> in front of it, and jerror.h needs jpeglib.h.
#include <jpeglib.h>

#include <jerror.h>

#include "tare/base/error.h"
#include "tare/transform/picture.h"

namespace tare {
namespace {

constexpr const char* kWhere = "transform.decode_jpeg";

// Each scan of a progressive file may cost the time of all its pixels; encoders write about ten.
constexpr int kMaxScans = 500;
// A block of 64 values takes a bit or more of a Huffman stream, and one component has a block for
// each 64 pixels.
constexpr int64_t kMaxPixelsPerByte = 512;

struct Errors {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is one to this struct
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}

// Pixels are right in spite of these warnings; all others say that some are made up.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) fail(info);
}

void on_progress(j_common_ptr info) {
  const auto* const scans = reinterpret_cast<jpeg_decompress_struct*>(info);
  if (scans->input_scan_number <= kMaxScans) return;
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  std::snprintf(errors->message, sizeof errors->message, "the file has more than %d scans",
                kMaxScans);
  std::longjmp(errors->back, 1);
}

// libjpeg's state, freed on every way out.
struct Jpeg {
  jpeg_decompress_struct info{};
  jpeg_progress_mgr progress{};
  Errors errors{};
  Jpeg() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = fail;
    errors.base.emit_message = on_message;
    progress.progress_monitor = on_progress;
  }
  ~Jpeg() { jpeg_destroy_decompress(&info); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
};

bool read_header(Jpeg& jpeg, const unsigned char* bytes, unsigned long size) {
  if (setjmp(jpeg.errors.back) != 0) return false;
  jpeg_create_decompress(&jpeg.info);
  jpeg.info.progress = &jpeg.progress;
  jpeg_mem_src(&jpeg.info, bytes, size);
  jpeg_read_header(&jpeg.info, TRUE);
  return true;
}

// `out` has the samples of all rows.
bool read_pixels(Jpeg& jpeg, uint8_t* out) {
  if (setjmp(jpeg.errors.back) != 0) return false;
  jpeg_decompress_struct& info = jpeg.info;
  jpeg_start_decompress(&info);
  const size_t row_bytes =
      static_cast<size_t>(info.output_width) * static_cast<size_t>(info.output_components);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = out + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// a * b / 255, rounded.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Programs store the four inks inverted, as Adobe's do: 255 is no ink.
Picture rgb_of_inks(const Picture& inks) {
  Picture result = empty_picture(3, inks.height, inks.width);
  const uint8_t* in = inks.pixels.get();
  uint8_t* out = result.pixels.get();
  for (int64_t i = 0; i < inks.height * inks.width; ++i, in += 4)
    for (int64_t c = 0; c < 3; ++c)
      *out++ = static_cast<uint8_t>(in[3] - scaled(255 - in[c], in[3]));
  return result;
}

}  // namespace

Picture decode_jpeg_picture(std::span<const std::byte> bytes, const std::string& name) {
  Jpeg jpeg;
  if (!read_header(jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
    throw FormatError(kWhere, name, "header", jpeg.errors.message);
  jpeg_decompress_struct& info = jpeg.info;
  const int64_t height = info.image_height, width = info.image_width;
  check_pixels(kWhere, name, height, width);
  if (!info.arith_code && height * width > static_cast<int64_t>(bytes.size()) * kMaxPixelsPerByte)
    throw FormatError(kWhere, name, "size",
                      std::to_string(width) + " x " + std::to_string(height) +
                          " pixels are more than the compressed file can hold");
  const int components = info.num_components;
  if (components != 1 && components != 3 && components != 4)
    throw FormatError(kWhere, name, "channels",
                      "are " + std::to_string(components) + "; grey has 1, RGB 3 and CMYK 4");
  info.out_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  Picture picture = empty_picture(components, height, width);
  if (!read_pixels(jpeg, picture.pixels.get()))
    throw FormatError(kWhere, name, "pixels", jpeg.errors.message);
  return components == 4 ? rgb_of_inks(picture) : std::move(picture);
}

}  // namespace tare
