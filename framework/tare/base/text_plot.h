// A plot of curves as text, for a terminal or a log.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tare/base/terminal.h"

namespace tare {

/// Describes a curve of a TextPlot; points that are not finite leave a gap.
struct TextCurve {
  std::vector<double> x{}, y{};  ///< as many of each
  char mark = '*';               ///< what a point is drawn with
};

/// Describes a plot. A value. Later curves are drawn over earlier ones.
struct TextPlot {
  std::string title{};              ///< above the plot; empty: none
  std::string x_title{};            ///< below the axis; empty: none
  bool log_x = false;               ///< whether x, all > 0, is logarithmic
  bool log_y = false;               ///< whether y, all > 0, is logarithmic
  size_t rows = 12;                 ///< lines of the plot itself, >= 2
  std::vector<TextCurve> curves{};  ///< at least one
};

/// Returns the plot in lines of at most `width` columns, 72 for kAnyWidth and never fewer than 30,
/// each with a newline. Numbers stand at both ends of each axis. A steep piece of a curve is drawn
/// as a column. Returns "" without a finite point.
[[nodiscard]] std::string text_plot(const TextPlot& plot, size_t width = kAnyWidth);

/// Returns a number with three significant digits, such as 1.25e-05 or 0.34.
[[nodiscard]] std::string short_number(double value);

}  // namespace tare
