// Draws a picture as a PNG file, with cairo.
#include <cairo.h>
#include <zlib.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "tare/base/error.h"
#include "tare/report/picture.h"

namespace tare::report {
namespace {

struct Release {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* pen) const { cairo_destroy(pen); }
};
using Surface = std::unique_ptr<cairo_surface_t, Release>;
using Pen = std::unique_ptr<cairo_t, Release>;

void check(cairo_status_t status) {
  if (status == CAIRO_STATUS_NO_MEMORY) throw std::bad_alloc();
  if (status != CAIRO_STATUS_SUCCESS)
    throw StateError("report.plot_png", cairo_status_to_string(status));
}

void set_colour(cairo_t* pen, std::string_view colour) {
  unsigned int rgb = 0;
  std::from_chars(colour.data() + 1, colour.data() + colour.size(), rgb, 16);
  cairo_set_source_rgb(pen, (rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0);
}

void draw(cairo_t* pen, const Stroke& stroke) {
  constexpr std::array kDashes{5.0, 5.0};
  set_colour(pen, stroke.colour);
  cairo_set_line_width(pen, stroke.width);
  cairo_set_dash(pen, kDashes.data(), stroke.dashed ? int{kDashes.size()} : 0, 0);
  bool pen_down = false;
  for (const auto& point : stroke.points) {
    const bool drawn = finite(point);
    if (drawn && !pen_down) cairo_move_to(pen, point.x, point.y);
    if (drawn) cairo_line_to(pen, point.x, point.y);
    pen_down = drawn;
  }
  cairo_stroke(pen);
}

/// Returns how far before its place a text starts.
double offset(cairo_t* pen, const Label& label) {
  if (label.anchor == Anchor::start) return 0;
  cairo_text_extents_t extents{};
  cairo_text_extents(pen, label.text.c_str(), &extents);
  return label.anchor == Anchor::middle ? extents.x_advance / 2 : extents.x_advance;
}

void draw(cairo_t* pen, const Label& label) {
  cairo_save(pen);
  set_colour(pen, label.colour);
  cairo_select_font_face(pen, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         label.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(pen, label.size);
  cairo_translate(pen, label.at.x, label.at.y);
  if (label.upwards) cairo_rotate(pen, -1.5707963267948966);  // a quarter turn
  cairo_move_to(pen, -offset(pen, label), 0);
  cairo_show_text(pen, label.text.c_str());
  cairo_restore(pen);
}

void add_number(std::string& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
}

void add_chunk(std::string& file, const std::string& type, const std::string& data) {
  add_number(file, static_cast<uint32_t>(data.size()));
  const std::string body = type + data;
  const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
  file += body;
  add_number(file, static_cast<uint32_t>(crc32(0, bytes, static_cast<uInt>(body.size()))));
}

/// Rows of red, green and blue, each behind the number of its filter, none.
std::string rows_of(cairo_surface_t* surface, int width, int height) {
  const unsigned char* data = cairo_image_surface_get_data(surface);
  const auto stride = static_cast<size_t>(cairo_image_surface_get_stride(surface));
  const auto across = static_cast<size_t>(width), down = static_cast<size_t>(height);
  std::string rows(down * (3 * across + 1), '\0');
  char* to = rows.data();
  for (size_t y = 0; y < down; ++y) {
    ++to;
    for (size_t x = 0; x < across; ++x, to += 3) {
      uint32_t pixel = 0;
      std::memcpy(&pixel, data + y * stride + x * sizeof pixel, sizeof pixel);
      to[0] = static_cast<char>(pixel >> 16 & 255);
      to[1] = static_cast<char>(pixel >> 8 & 255);
      to[2] = static_cast<char>(pixel & 255);
    }
  }
  return rows;
}

std::string compressed(const std::string& text) {
  constexpr int kLevel = 3;  // of zlib's: two thirds of the default's time, a sixth more bytes
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::string result(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(result.data()), &size,
                reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()),
                kLevel) != Z_OK)
    throw std::bad_alloc();
  result.resize(size);
  return result;
}

/// Writes PNG (ISO/IEC 15948). Cairo's own writer tries all filters on every row, which takes three
/// times as long and makes the file no smaller.
std::string file_of(cairo_surface_t* surface) {
  cairo_surface_flush(surface);
  const int width = cairo_image_surface_get_width(surface);
  const int height = cairo_image_surface_get_height(surface);
  std::string header;
  add_number(header, static_cast<uint32_t>(width));
  add_number(header, static_cast<uint32_t>(height));
  header += {8, 2, 0, 0, 0};  // bits of a channel, three of which are a pixel; not interlaced
  std::string file = "\x89PNG\r\n\x1a\n";
  add_chunk(file, "IHDR", header);
  add_chunk(file, "IDAT", compressed(rows_of(surface, width, height)));
  add_chunk(file, "IEND", "");
  return file;
}

}  // namespace

std::string png_file(const Picture& picture) {
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                                   static_cast<int>(kPngScale * picture.width),
                                                   static_cast<int>(kPngScale * picture.height)));
  const Pen pen(cairo_create(surface.get()));
  cairo_scale(pen.get(), kPngScale, kPngScale);
  set_colour(pen.get(), "#ffffff");
  cairo_paint(pen.get());
  cairo_set_line_cap(pen.get(), CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(pen.get(), CAIRO_LINE_JOIN_ROUND);
  for (const auto& stroke : picture.strokes) draw(pen.get(), stroke);
  for (const auto& label : picture.labels) draw(pen.get(), label);
  check(cairo_status(pen.get()));
  return file_of(surface.get());
}

}  // namespace tare::report
