// Curve: the points of a line, fewer of them, and their path. Internal.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace tare::report {

struct Point {
  double x = 0, y = 0;
};
[[nodiscard]] bool finite(const Point& point);

/// Holds the lowest and highest of the values that were added; low > high without one.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value);
};

/// Points of one line beyond this number are reduced to the lowest and highest of equal stretches.
inline constexpr size_t kLinePoints = 800;

/// Returns at most kLinePoints points, with the lowest and highest of each stretch. Points that are
/// not finite are gaps; a gap is skipped where its stretch has others.
[[nodiscard]] std::vector<Point> thinned(const std::vector<Point>& points);

/// Returns the finite points without those that lie no further than `tolerance` above or below the
/// line through the points kept, after Douglas and Peucker, "Algorithms for the reduction of the
/// number of points required to represent a digitized line", 1973. Ends, also those beside a gap,
/// are kept, and one point that is not finite for each gap. `points`: x ascending.
[[nodiscard]] std::vector<Point> straightened(const std::vector<Point>& points, double tolerance);

/// Returns the data of an SVG path through `points`, rounded to whole units, each relative to the
/// one before and with no character too many: "m0 512 10-3 10 2". A point that is not finite lifts
/// the pen; one between two gaps becomes a line of no length, which is seen as a dot.
[[nodiscard]] std::string relative_path(const std::vector<Point>& points);

}  // namespace tare::report
