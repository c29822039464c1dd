// Thins the points of a line, and writes its path.
#include "tare/report/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace tare::report {
namespace {

/// Marks what is kept of the points between the first and the last, which are.
void keep_corners(std::span<const Point> points, double tolerance, std::span<char> kept) {
  if (points.size() < 3) return;
  const Point first = points.front(), last = points.back();
  const double slope = last.x > first.x ? (last.y - first.y) / (last.x - first.x) : 0;
  size_t furthest = 0;
  double distance = tolerance;
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const double off = std::abs(points[i].y - first.y - slope * (points[i].x - first.x));
    if (off <= distance) continue;
    distance = off;
    furthest = i;
  }
  if (furthest == 0) return;
  kept[furthest] = 1;
  keep_corners(points.first(furthest + 1), tolerance, kept.first(furthest + 1));
  keep_corners(points.subspan(furthest), tolerance, kept.subspan(furthest));
}

/// Calls `take` with each longest stretch of finite points.
template <class Take>
void each_stretch(const std::vector<Point>& points, const Take& take) {
  auto start = points.begin();
  while (true) {
    start = std::find_if(start, points.end(), finite);
    if (start == points.end()) return;
    const auto end = std::find_if_not(start, points.end(), finite);
    take(std::span(start, end));
    start = end;
  }
}

/// Appends `x` and `y`, with a blank only where two numbers would become one.
void append_pair(std::string& path, int64_t x, int64_t y) {
  const auto append = [&path](int64_t number) {
    if (number >= 0 && !path.empty() && path.back() >= '0' && path.back() <= '9') path += ' ';
    path += std::to_string(number);
  };
  append(x);
  append(y);
}

}  // namespace

bool finite(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

void Range::add(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= kLinePoints) return points;
  constexpr size_t kStretches = kLinePoints / 2;
  std::vector<Point> kept;
  const auto lower = [](const Point& a, const Point& b) {
    return std::isfinite(a.y) && (!std::isfinite(b.y) || a.y < b.y);
  };
  for (size_t i = 0; i < kStretches; ++i) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / kStretches);
    const auto last =
        points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / kStretches);
    auto [low, high] = std::minmax_element(first, last, lower);
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

std::vector<Point> straightened(const std::vector<Point>& points, double tolerance) {
  std::vector<Point> result;
  each_stretch(points, [&](std::span<const Point> stretch) {
    if (!result.empty()) result.push_back({std::nan(""), std::nan("")});
    std::vector<char> kept(stretch.size(), 0);
    kept.front() = kept.back() = 1;
    keep_corners(stretch, tolerance, kept);
    for (size_t i = 0; i < stretch.size(); ++i)
      if (kept[i] != 0) result.push_back(stretch[i]);
  });
  return result;
}

std::string relative_path(const std::vector<Point>& points) {
  std::string path;
  int64_t x = 0, y = 0;
  each_stretch(points, [&](std::span<const Point> stretch) {
    size_t count = 0;
    for (const auto& point : stretch) {
      const int64_t next_x = std::llround(point.x), next_y = std::llround(point.y);
      if (count > 0 && next_x == x && next_y == y) continue;
      if (count++ == 0) path += 'm';
      append_pair(path, next_x - x, next_y - y);
      x = next_x;
      y = next_y;
    }
    if (count == 1) path += "h0";
  });
  return path;
}

}  // namespace tare::report
