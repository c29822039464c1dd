// Picture: lines and texts at places in pixels, and the two files it becomes. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tare/report/curve.h"

namespace tare::report {

/// Selects the part of a text that lies at its place.
enum class Anchor { start, middle, end };

struct Label {
  std::string text{};  ///< as drawable_text() gives it
  Point at{};          ///< on the baseline
  double size = 12;    ///< of the letters, in pixels
  const char* colour = "#000000";
  Anchor anchor = Anchor::start;
  bool bold = false;
  bool upwards = false;  ///< turned, to be read from below
};

struct Stroke {
  std::vector<Point> points{};  ///< one that is not finite lifts the pen; one alone is a dot
  const char* colour = "#000000";
  double width = 1;  ///< in pixels; the ends are round
  bool dashed = false;
};

/// Describes what is drawn on white in order: strokes, then labels, over each other. y points down.
struct Picture {
  double width = 0, height = 0;        ///< in pixels
  std::string title{}, description{};  ///< the text alternative; any text
  std::vector<Stroke> strokes{};
  std::vector<Label> labels{};
};

/// Returns a stand-alone SVG file of the picture's size, readable as the source of an <img>.
[[nodiscard]] std::string svg_file(const Picture& picture);

/// Returns a PNG file with kPngScale pixels for each pixel of the picture. The title is in no PNG.
/// Throws StateError where Cairo cannot draw, std::bad_alloc without memory.
[[nodiscard]] std::string png_file(const Picture& picture);
inline constexpr double kPngScale = 1;

/// Returns printable() of the text, with U+FFFD for the code points that neither XML nor Cairo
/// takes for characters.
[[nodiscard]] std::string drawable_text(std::string_view text, size_t limit = 200);

/// Estimates the width of a text in pixels, rather too wide: the viewer chooses the font.
[[nodiscard]] double width_of(std::string_view text, double size);

/// Returns `text`, or as much of its start as is not wider than `width`, and "...".
[[nodiscard]] std::string fitting(const std::string& text, double size, double width);

}  // namespace tare::report
