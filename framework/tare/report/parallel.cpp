// Draws parallel coordinates.
#include "tare/report/parallel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/report/frame.h"
#include "tare/report/markup.h"

namespace tare::report {
namespace {

using Runs = std::vector<const SweepRun*>;

// Heights in pixels: from axis to axis, of the band above each axis with its name and labels, below
// the last axis; and the width of a chart in a window of 400 pixels.
constexpr double kPitch = 100, kBand = 38, kBelow = 8, kNarrow = 340;

/// One axis: where each run crosses it, and its labels, from 0 to 1.
struct Rail {
  std::string name;
  Axis axis;
  std::vector<double> places;
};

/// Returns the labels that can stand beside each other in a narrow window; both ends go first.
std::vector<Tick> spaced(const std::vector<Tick>& ticks) {
  struct Taken {
    double from, to;
  };
  std::vector<Taken> taken;
  std::vector<Tick> kept;
  const auto add = [&](const Tick& tick) {
    const double width = kLetter * static_cast<double>(tick.label.size()) + 10;
    const double anchor = tick.value < 0.05 ? 0 : tick.value > 0.95 ? 1 : 0.5;
    const double from = kNarrow * tick.value - anchor * width, to = from + width;
    const auto meets = [&](const Taken& other) { return from < other.to && other.from < to; };
    if (std::ranges::any_of(taken, meets)) return;
    taken.push_back({from, to});
    kept.push_back(tick);
  };
  if (!ticks.empty()) add(ticks.front());
  if (ticks.size() > 1) add(ticks.back());
  for (size_t i = 1; i + 1 < ticks.size(); ++i) add(ticks[i]);
  return kept;
}

std::string label(double value, bool integer) {
  return integer
             ? format_count(static_cast<int64_t>(std::clamp(value, -kMostCounted, kMostCounted)))
             : figure(value);
}

/// Makes an axis from the lowest to the highest value, both labelled.
Axis number_axis(const Range& range, bool logarithmic, bool integer) {
  Axis axis = exact_axis(range.low, range.high, integer ? Unit::count : Unit::number, 4);
  if (logarithmic && range.low > 0 && range.low < range.high) {
    axis.ticks = log_axis(range.low, range.high).ticks;
    axis.logarithmic = true;
  }
  std::erase_if(axis.ticks, [&](const Tick& tick) {
    return tick.value <= axis.low || tick.value >= axis.high;
  });
  axis.ticks.insert(axis.ticks.begin(), {axis.low, label(axis.low, integer)});
  if (range.low < range.high) axis.ticks.push_back({axis.high, label(axis.high, integer)});
  return axis;
}

/// Returns an axis from 0 to 1 with the labels that fit. `gap`: of its start, for runs
/// without value.
Axis placed(const Axis& axis, double gap) {
  std::vector<Tick> ticks;
  if (gap > 0) ticks.push_back({0, "not set"});
  for (const auto& tick : axis.ticks)
    ticks.push_back({gap + (1 - gap) * axis.place(tick.value), tick.label});
  return {.low = 0, .high = 1, .ticks = spaced(ticks)};
}

Axis choice_axis(const std::vector<std::string>& choices) {
  const double fitting = kNarrow / static_cast<double>(choices.size()) / kLetter - 4;
  const auto letters = static_cast<size_t>(std::max(6.0, fitting));
  Axis axis{.high = std::max(1.0, static_cast<double>(choices.size() - 1))};
  for (size_t i = 0; i < choices.size(); ++i)
    axis.ticks.push_back({static_cast<double>(i), printable(choices[i], letters)});
  return axis;
}

Axis axis_of(const SweepParameter& p, const std::vector<double>& values) {
  if (!p.choices.empty()) return choice_axis(p.choices);
  Range range;
  const auto add = [&](double value) {
    range.add(p.integer ? std::clamp(value, -kMostCounted, kMostCounted) : value);
  };
  for (const double value : {p.low, p.high})
    if (is_drawable(value)) add(value);
  for (const double value : values)
    if (!std::isnan(value)) add(value);
  if (range.low > range.high) range = {.low = 0, .high = 1};
  return number_axis(range, p.logarithmic, p.integer);
}

Rail rail_of(const std::string& name, const Axis& axis, std::vector<double> values) {
  constexpr double kGap = 0.28;
  const bool unset = std::ranges::any_of(values, [](double value) { return std::isnan(value); });
  const double gap = unset ? kGap : 0;
  for (double& value : values)
    value = std::isnan(value) ? 0 : gap + (1 - gap) * std::clamp(axis.place(value), 0.0, 1.0);
  return {tail(name, kNameBytes), placed(axis, gap), std::move(values)};
}

std::vector<Rail> rails_of(const SweepSummary& sweep, const Runs& runs) {
  std::vector<Rail> rails;
  std::vector<double> values(runs.size());
  for (size_t p = 0; p < sweep.parameters.size(); ++p) {
    std::ranges::transform(runs, values.begin(),
                           [&](const SweepRun* run) { return value_of(sweep, *run, p); });
    const SweepParameter& parameter = sweep.parameters[p];
    rails.push_back(rail_of(parameter.name, axis_of(parameter, values), values));
  }
  Range range;
  for (size_t i = 0; i < runs.size(); ++i) range.add(values[i] = runs[i]->value);
  const bool logarithmic = value_axis(range, Unit::number).logarithmic;
  rails.push_back(rail_of(sweep.metric, number_axis(range, logarithmic, false), values));
  rails.back().name += sweep.maximize ? ", highest is best" : ", lowest is best";
  return rails;
}

double y_of(size_t rail) { return kBand + kPitch * static_cast<double>(rail); }

/// Draws bands over the strands, which can be seen through the bands.
std::string bands(const std::vector<Rail>& rails) {
  std::string text;
  for (size_t i = 0; i < rails.size(); ++i) {
    const std::string y = coordinate(y_of(i)), top = coordinate(y_of(i) - kBand);
    text += "<rect class=\"band\" width=\"100%\" y=\"" + top + "\" height=\"" + coordinate(kBand) +
            "\"/><line class=\"rail\" x2=\"100%\" y1=\"" + y + "\" y2=\"" + y +
            "\"/><svg width=\"100%\" height=\"18\" y=\"" + top +
            "\"><text class=\"name\" y=\"14\">" + escaped(rails[i].name, kNameBytes + 3) +
            "</text></svg>" +
            x_labels(rails[i].axis, {.top = y_of(i) - 23, .height = 0}, /*inside=*/true);
  }
  return "<g class=\"bands\">" + text + "</g>";
}

std::vector<Strand> strands_of(const std::vector<Rail>& rails, const Runs& runs,
                               const Shading& shading) {
  std::vector<Strand> strands;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<Point> points;
    for (size_t r = 0; r < rails.size(); ++r) {
      const double x = kUnits * rails[r].places[i], y = y_of(r);
      if (r > 0) points.push_back({x, y - kBand});  // and straight down behind the labels
      points.push_back({x, y});
    }
    strands.push_back({.name = runs[i]->name + ": " + figure(runs[i]->value),
                       .path = relative_path(points),
                       .shade = shading.shade(runs[i]->value),
                       .dashed = is_pruned(*runs[i]),
                       .best = shading.is_best(*runs[i])});
  }
  return strands;
}

}  // namespace

std::string parallel_chart(const SweepSummary& sweep, const Runs& runs, const Shading& shading) {
  if (runs.empty()) return {};
  const std::vector<Rail> rails = rails_of(sweep, runs);
  const double height = y_of(rails.size() - 1) + kBelow;
  const auto strands = strands_of(rails, runs, shading);
  const std::string description =
      "A line for each run through its values of the parameters and, at the bottom, its " +
      tail(sweep.metric, kNameBytes) + " from " + figure(shading.worst()) + ", the worst, to " +
      figure(shading.best()) + '.';
  return head("Parameters and " + tail(sweep.metric, kNameBytes), description, height, false) +
         plot({.top = 0, .height = height}, drawn(strands), height) + bands(rails) + "</svg>" +
         strand_legend(strands, shading);
}

}  // namespace tare::report
