// Points that a thinned line keeps.
#include "tare/report/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tare::report {
namespace {

std::vector<Point> walk(size_t count) {
  std::mt19937 generator(3);
  std::vector<Point> points;
  double y = 0;
  for (size_t i = 0; i < count; ++i) {
    y += static_cast<double>(generator() % 9) - 4;
    points.push_back({static_cast<double>(i), y});
  }
  return points;
}

double height_at(const std::vector<Point>& line, double x) {
  const auto right = std::ranges::find_if(line, [&](const Point& point) { return point.x >= x; });
  if (right == line.begin()) return right->y;
  const auto left = right - 1;
  return left->y + (right->y - left->y) * (x - left->x) / (right->x - left->x);
}

TEST(Straightened, LeavesOutWhatLiesOnALine) {
  const auto kept = straightened({{0, 0}, {1, 1}, {2, 2}, {3, 0}, {4, -2}}, 0.5);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[1].x, 2);
  EXPECT_EQ(straightened({{0, 0}, {1, 0.4}, {2, 0}}, 0.5).size(), 2U);
  EXPECT_EQ(straightened({{0, 0}, {1, 0.6}, {2, 0}}, 0.5).size(), 3U);
}

TEST(Straightened, StaysWithinTheTolerance) {
  const auto points = walk(2000);
  for (const double tolerance : {0.5, 2.0, 16.0}) {
    const auto kept = straightened(points, tolerance);
    EXPECT_LT(kept.size(), points.size());
    EXPECT_EQ(kept.front().x, 0);
    EXPECT_EQ(kept.back().x, 1999);
    for (const auto& point : points)
      ASSERT_LE(std::abs(height_at(kept, point.x) - point.y), tolerance + 1e-9) << point.x;
  }
}

TEST(Straightened, KeepsGaps) {
  const auto kept =
      straightened({{0, NAN}, {1, 5}, {2, 5}, {3, 5}, {4, NAN}, {5, INFINITY}, {6, 1}}, 1);
  ASSERT_EQ(kept.size(), 4U);
  EXPECT_EQ(kept[1].x, 3);
  EXPECT_FALSE(finite(kept[2]));
  EXPECT_EQ(kept[3].x, 6);
  EXPECT_TRUE(straightened({{0, NAN}}, 1).empty());
  EXPECT_TRUE(straightened({}, 1).empty());
}

TEST(RelativePath, HasNoCharacterTooMany) {
  EXPECT_EQ(relative_path({{0, 512.4}, {10, 509}, {20, 511}, {20.2, 511.3}}), "m0 512 10-3 10 2");
  EXPECT_EQ(relative_path({{1, 2}, {3, NAN}, {4, 5}, {6, -7}}), "m1 2h0m3 3 2-12");
  EXPECT_EQ(relative_path({{1, NAN}}), "");
}

TEST(Thinned, KeepsTheExtremes) {
  const auto points = walk(100'000);
  const auto kept = thinned(points);
  EXPECT_LE(kept.size(), kLinePoints);
  const auto [low, high] = std::ranges::minmax_element(points, {}, &Point::y);
  const auto [lowest, highest] = std::ranges::minmax_element(kept, {}, &Point::y);
  EXPECT_EQ(lowest->y, low->y);
  EXPECT_EQ(highest->y, high->y);
}

}  // namespace
}  // namespace tare::report
