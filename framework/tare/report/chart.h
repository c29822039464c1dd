// Charts as SVG text: lines, stacked areas, bars. Pure functions of values.
//
// A chart is as wide as its place and keeps its letters' size, because it has percentages where
// others have a view box. Colours come from chart_style(), which the page has once. Every text is
// escaped here. Values that are not finite leave a gap.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "tare/report/axis.h"
#include "tare/report/curve.h"

namespace tare::report {

/// Colours by number; they differ in lightness too, so that colour-blind readers distinguish them
/// (after Okabe and Ito, "Color universal design", 2008). The last two are grey and that of text.
inline constexpr size_t kColours = 11, kGrey = 9, kInk = 10;
/// Lists the colours by number on white.
inline constexpr std::array<const char*, kColours> kOnWhite{
    "#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7",
    "#d6c520", "#8c5a2b", "#332288", "#8b939c", "#16191d"};

/// Selects how a series is drawn; `automatic`: as a line, and as dots where its points are few.
enum class Mark { automatic, line, dots };

/// Describes a curve of a LineChart.
struct Series {
  std::string name{};           ///< in the legend
  std::vector<Point> points{};  ///< x ascending
  size_t colour = 0;            ///< by number, < kColours
  bool dashed = false;          ///< with a dashed line
  Mark mark = Mark::automatic;  ///< as a line or as dots
};

/// Names a stretch of the x axis, drawn with a line at its start. Names that are wider than their
/// stretches stand in two rows, one name above the next.
struct Span {
  double start = 0, end = 0;  ///< on the x axis, start <= end
  std::string name{};         ///< written beside its line
};

/// Describes a chart of curves over one x axis. A value.
struct LineChart {
  std::string title{}, description{};                ///< the text alternative
  std::string x_title{}, y_title{};                  ///< of the axes; empty: none
  Unit x_unit = Unit::count, y_unit = Unit::number;  ///< how the numbers of the axes are written
  bool x_logarithmic = false;                        ///< all x are above zero
  std::vector<Series> series{};                      ///< in the order of the legend
  std::vector<Span> spans{};                         ///< in ascending order
};

/// Draws a chart of lines; returns "" without a finite point. The y axis is logarithmic where all
/// values are above zero and the highest is more than 50 times the lowest.
[[nodiscard]] std::string line_chart(const LineChart& chart);

/// Describes a layer of an AreaChart.
struct Layer {
  std::string name{};            ///< in the legend
  std::vector<double> values{};  ///< >= 0, as many as AreaChart::x
  size_t colour = 0;             ///< by number, < kColours
};

/// Describes a chart of layers that lie one above the other. A value.
struct AreaChart {
  std::string title{}, description{};  ///< the title above the chart, and the text alternative
  std::string x_title{}, y_title{};    ///< of the axes; empty: none
  Unit x_unit = Unit::seconds, y_unit = Unit::bytes;  ///< how the numbers of the axes are written
  std::vector<double> x{};                            ///< ascending
  std::vector<Layer> layers{};                        ///< the first one at the bottom
  Series line{};                                      ///< drawn over the areas
  int height = 240;                                   ///< of the plot, in pixels
  bool y_axis = true;  ///< false: no ticks, and the highest sum fills the plot
};

/// Draws a chart of stacked areas; returns "" with fewer than two x values.
[[nodiscard]] std::string area_chart(const AreaChart& chart);

/// Describes a bar of a BarChart.
struct Bar {
  std::string label{}, text{};  ///< the texts before and behind the bar
  double value = 0;             ///< >= 0
  size_t colour = 0;            ///< by number, < kColours
};

/// Describes a chart of horizontal bars, one below the other. A value.
struct BarChart {
  std::string title{}, description{};  ///< above the chart; the text alternative
  std::vector<Bar> bars{};             ///< from top to bottom
};

/// Draws a chart of bars; returns "" without bars.
[[nodiscard]] std::string bar_chart(const BarChart& chart);

/// Describes a legend's entry for a colour.
struct LegendItem {
  std::string name{};   ///< the name of the series or layer
  size_t colour = 0;    ///< by number, < kColours
  bool line = false;    ///< drawn as a line, else as an area
  bool dashed = false;  ///< with a dashed line
};

/// Returns an HTML list of names and their colours.
[[nodiscard]] std::string legend(const std::vector<LegendItem>& items);

/// Returns the style sheet of charts and legends, light and dark.
[[nodiscard]] std::string chart_style();

}  // namespace tare::report
