#include <cairo.h>

#include <array>
#include <charconv>
#include <memory>
#include <new>
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

/// How far a text starts before its place.
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

/// Cairo's writer; no exception may pass through its C.
cairo_status_t append(void* file, const unsigned char* data, unsigned int size) noexcept {
  try {
    static_cast<std::string*>(file)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
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
  std::string file;
  check(cairo_surface_write_to_png_stream(surface.get(), append, &file));
  return file;
}

}  // namespace tare::report
