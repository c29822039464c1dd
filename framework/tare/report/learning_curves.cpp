// Draws the metric of many runs by epoch.
#include "tare/report/learning_curves.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tare/report/frame.h"
#include "tare/report/markup.h"

namespace tare::report {
namespace {

constexpr Frame kPlot{.top = kAbove + kTitleRow, .height = 300};

struct Curve {
  const SweepRun* run = nullptr;
  std::vector<Point> points{};  ///< in pixels of the plot
};

/// Values by epoch, from 1; gaps of a curve that has many are closed.
std::vector<Point> points_of(const SweepRun& run) {
  constexpr std::ptrdiff_t kGaps = 10;
  std::vector<Point> points;
  for (size_t i = 0; i < run.metric.size(); ++i)
    points.push_back(
        {static_cast<double>(i + 1), is_drawable(run.metric[i]) ? run.metric[i] : NAN});
  points = thinned(points);
  if (std::ranges::count_if(points, std::not_fn(finite)) > kGaps)
    std::erase_if(points, std::not_fn(finite));
  return points;
}

/// The curves of runs that have one, and the ends of both directions.
struct Curves {
  std::vector<Curve> all{};
  Range x{}, y{};
};

Curves curves_of(const std::vector<const SweepRun*>& runs) {
  Curves curves;
  for (const auto* run : runs) {
    auto points = points_of(*run);
    if (std::ranges::none_of(points, finite)) continue;
    for (const auto& point : points) {
      if (!finite(point)) continue;
      curves.x.add(point.x);
      curves.y.add(point.y);
    }
    curves.all.push_back({run, std::move(points)});
  }
  return curves;
}

std::vector<Strand> strands_of(const std::vector<Curve>& curves, const Shading& shading,
                               double tolerance) {
  std::vector<Strand> strands;
  for (const auto& curve : curves) {
    const SweepRun& run = *curve.run;
    const bool ended = is_complete(run) || is_pruned(run);
    strands.push_back({.name = run.name + ": " + figure(run.value),
                       .path = relative_path(straightened(curve.points, tolerance)),
                       .shade = ended && is_drawable(run.value) ? shading.shade(run.value) : NAN,
                       .dashed = is_pruned(run),
                       .best = shading.is_best(run)});
  }
  return strands;
}

/// Returns the strands with the smallest tolerance that makes them no larger than `limit`.
std::vector<Strand> fitting_strands(const std::vector<Curve>& curves, const Shading& shading,
                                    size_t limit) {
  double tolerance = 0.5;
  auto strands = strands_of(curves, shading, tolerance);
  while (drawn(strands).size() > limit && tolerance < kPlot.height)
    strands = strands_of(curves, shading, tolerance *= 2);
  return strands;
}

}  // namespace

std::string learning_curves(const SweepSummary& sweep, const std::vector<const SweepRun*>& runs,
                            const Shading& shading, size_t limit) {
  Curves curves = curves_of(runs);
  if (curves.all.empty()) return {};
  const Axis x_axis = exact_axis(curves.x.low, curves.x.high, Unit::count);
  const Axis y_axis = value_axis(curves.y, Unit::number, 6);
  for (auto& curve : curves.all)
    for (auto& point : curve.points)
      point = {kUnits * x_axis.place(point.x), kPlot.height * (1 - y_axis.place(point.y))};
  const auto strands = fitting_strands(curves.all, shading, limit);
  const std::string description = "A line for each of " + std::to_string(strands.size()) +
                                  " runs. At the end the best is " + figure(shading.best()) +
                                  " and the worst " + figure(shading.worst()) + '.';
  return head(tail(sweep.metric, kNameBytes) + " by epoch", description,
              kPlot.bottom() + kTickRow + kTitleRow, true) +
         y_ticks(y_axis, kPlot) + plot(kPlot, drawn(strands), kPlot.height) +
         x_labels(x_axis, kPlot) + axis_titles("epoch", tail(sweep.metric, kAxisNameBytes), kPlot) +
         "</svg>" + strand_legend(strands, shading);
}

}  // namespace tare::report
