// The frame of a chart: title, ticks, and the plot that is as wide as its place. Internal.
#pragma once

#include <string>

#include "tare/report/axis.h"
#include "tare/report/curve.h"

namespace tare::report {

inline constexpr double kTickRow = 22;   ///< below the plot, in pixels
inline constexpr double kTitleRow = 18;  ///< of an axis title, in pixels
inline constexpr double kAbove = 8;      ///< half a label of the highest tick
inline constexpr double kUnits = 1000;   ///< of a plot's view box
/// Widths in pixels: of a plot with gutter in a window of 400 pixels, and of a letter at most.
inline constexpr double kNarrowPlot = 290, kLetter = 7.5;

/// Gives the place of the plot, in pixels.
struct Frame {
  double top = kAbove, height = 200;
  [[nodiscard]] double bottom() const { return top + height; }
};

/// Returns the start of a chart, up to its text alternative; "</svg>" ends it. `gutter`: with space
/// at the left for the labels of the y axis.
[[nodiscard]] std::string head(const std::string& title, const std::string& description,
                               double height, bool gutter);
/// Returns the plot: a view box of kUnits by `units`, stretched, so that curves are as wide as the
/// page.
[[nodiscard]] std::string plot(const Frame& frame, const std::string& content,
                               double units = kUnits);
/// Returns lines across the plot, and their labels in the gutter.
[[nodiscard]] std::string y_ticks(const Axis& axis, const Frame& frame);
/// Returns labels of the x axis in the middle below their ticks, but within the plot where they are
/// wide; `inside`: all of them within it, also where it has no gutter.
[[nodiscard]] std::string x_labels(const Axis& axis, const Frame& frame, bool inside = false);

inline constexpr size_t kAxisNameBytes = 20;  ///< that fit above an axis in a narrow window

/// Returns the titles of the axes: the title of y at the top left, over its labels, the title of x
/// below its ticks.
[[nodiscard]] std::string axis_titles(const std::string& x, const std::string& y,
                                      const Frame& frame);

/// Returns the axis of a range, which must not be empty: logarithmic for numbers above zero of
/// which the highest is more than 50 times the lowest, else with about `count` ticks.
[[nodiscard]] Axis value_axis(const Range& range, Unit unit, int count = 4);

}  // namespace tare::report
