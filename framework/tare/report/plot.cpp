// Lays out the plot of a metric by epoch.
#include "tare/report/plot.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>

#include "tare/report/chart.h"
#include "tare/report/frame.h"
#include "tare/report/markup.h"
#include "tare/report/picture.h"
#include "tare/report/sweep_summary.h"

namespace tare::report {
namespace {

constexpr double kWidth = 720, kHeight = 432;
constexpr double kTop = 84, kBottom = kHeight - 62, kRight = kWidth - 28;  // of the plot
constexpr double kMargin = 16;                                             // left of everything
constexpr double kSmall = 12, kNormal = 13, kLarge = 18;                   // letters
constexpr const char *kInkColour = kOnWhite[kInk], *kSoft = "#5b6570", *kRule = "#dfe3e8";

struct Curve {
  const char *name, *key, *colour;
  bool dashed = false;
  std::vector<Point> points{};
  /// Whether the points are so few that each is shown; dashes would drown in the zigzag of more.
  [[nodiscard]] bool has_few() const { return points.size() <= 60; }
  [[nodiscard]] Stroke stroke(std::vector<Point> path) const {
    return {std::move(path), colour, has_few() ? 2.0 : 1.5, dashed && has_few()};
  }
};

std::vector<Point> points_of(const std::vector<double>& values) {
  std::vector<Point> points;
  for (size_t i = 0; i < values.size(); ++i)
    points.push_back({static_cast<double>(i + 1), is_drawable(values[i]) ? values[i] : NAN});
  return points;
}

/// Returns the curves to draw, with colours and dashes as in the report of a run.
std::vector<Curve> curves_of(const MetricPlot& plot) {
  std::vector<Curve> curves{{"Training", "training", kOnWhite[0], false, points_of(plot.train)},
                            {"Validation", "validation", kOnWhite[2], true, points_of(plot.valid)}};
  std::erase_if(curves,
                [](const Curve& curve) { return std::ranges::none_of(curve.points, finite); });
  return curves;
}

/// Makes an axis from 1 to the last epoch; a single one is in the middle.
Axis epoch_axis(size_t epochs) {
  if (epochs > 1) return exact_axis(1, static_cast<double>(epochs), Unit::count, 8);
  Axis axis{.low = 0, .high = 2};
  if (epochs == 1) axis.ticks = {{1, "1"}};
  return axis;
}

/// A constant is in the middle too.
Axis metric_axis(const std::vector<Curve>& curves) {
  Range range;
  for (const auto& curve : curves)
    for (const auto& point : curve.points)
      if (finite(point)) range.add(point.y);
  if (range.low > range.high) return {};
  if (range.low == range.high) {
    const double margin = range.low == 0 ? 1 : 0.1 * std::abs(range.low);
    range = {.low = range.low - margin, .high = range.high + margin};
  }
  return value_axis(range, Unit::number, 6);
}

/// The axes of a plot, and where they are in the image.
struct Layout {
  Axis x{}, y{};
  double left = 0;
  [[nodiscard]] Point place(const Point& point) const {
    return {left + (kRight - left) * x.place(point.x),
            kBottom - (kBottom - kTop) * y.place(point.y)};
  }
};

Layout layout_of(const MetricPlot& plot, const std::vector<Curve>& curves) {
  Layout layout{.x = epoch_axis(std::max(plot.train.size(), plot.valid.size())),
                .y = metric_axis(curves)};
  double widest = width_of("0.0", kSmall);
  for (const auto& tick : layout.y.ticks) widest = std::max(widest, width_of(tick.label, kSmall));
  layout.left = kMargin + kNormal + 10 + widest + 8;
  return layout;
}

/// Moves a value to the middle of a pixel, so that a thin line is sharp.
double sharp(double value) { return std::floor(value) + 0.5; }

void add_axes(const Layout& layout, Picture& picture) {
  for (const auto& tick : layout.y.ticks) {
    const double y = sharp(layout.place({0, tick.value}).y);
    picture.strokes.push_back({.points = {{layout.left, y}, {kRight, y}}, .colour = kRule});
    picture.labels.push_back({tick.label, {layout.left - 8, y + 4}, kSmall, kSoft, Anchor::end});
  }
  const double foot = sharp(kBottom);
  picture.strokes.push_back({.points = {{layout.left, foot}, {kRight, foot}}, .colour = kSoft});
  for (const auto& tick : layout.x.ticks) {
    const double x = sharp(layout.place({tick.value, 0}).x);
    picture.strokes.push_back({.points = {{x, foot}, {x, foot + 5}}, .colour = kSoft});
    const double furthest = kWidth - 4 - width_of(tick.label, kSmall) / 2;
    picture.labels.push_back(
        {tick.label, {std::min(x, furthest), kBottom + 20}, kSmall, kSoft, Anchor::middle});
  }
}

void add_curve(const Layout& layout, const Curve& curve, Picture& picture) {
  std::vector<Point> line;
  Stroke dots{.colour = curve.colour, .width = 6};
  for (const auto& point : thinned(curve.points)) {
    line.push_back(finite(point) ? layout.place(point) : point);
    dots.points.push_back(line.back());
    dots.points.push_back({NAN, NAN});
  }
  picture.strokes.push_back(curve.stroke(std::move(line)));
  if (curve.has_few()) picture.strokes.push_back(std::move(dots));
}

void add_legend(const Layout& layout, const std::vector<Curve>& curves, Picture& picture) {
  constexpr double kLine = 28, kY = 60;
  double x = layout.left;
  for (const auto& curve : curves) {
    picture.strokes.push_back(curve.stroke({{x, kY - 4}, {x + kLine, kY - 4}}));
    picture.labels.push_back({curve.name, {x + kLine + 8, kY}, kNormal, kInkColour});
    x += kLine + 8 + width_of(curve.name, kNormal) + 16;
  }
}

/// Returns "4 epochs; last training value 0.25; last validation value 0.5."
std::string description_of(const MetricPlot& plot, const std::vector<Curve>& curves) {
  if (curves.empty()) return "No values.";
  const size_t epochs = std::max(plot.train.size(), plot.valid.size());
  std::string text = epochs == 1 ? "One epoch" : std::to_string(epochs) + " epochs";
  for (const auto& curve : curves) {
    const auto last = std::find_if(curve.points.rbegin(), curve.points.rend(), finite);
    text += std::string("; last ") + curve.key + " value " + figure(last->y);
  }
  return text + '.';
}

/// Adds the title and the axes' names, cut where they do not fit.
void add_names(const Layout& layout, const std::string& metric, Picture& picture) {
  const double across = (layout.left + kRight) / 2, height = kBottom - kTop;
  const std::string scale = layout.y.logarithmic ? " (log scale)" : "";
  const std::string name =
      fitting(drawable_text(capitalized(metric)), kNormal, height - width_of(scale, kNormal));
  picture.labels.push_back(
      {.text = fitting(drawable_text(picture.title), kLarge, kRight - layout.left),
       .at = {layout.left, 34},
       .size = kLarge,
       .colour = kInkColour,
       .bold = true});
  picture.labels.push_back({.text = name + scale,
                            .at = {kMargin + kNormal, kBottom - height / 2},
                            .size = kNormal,
                            .colour = kInkColour,
                            .anchor = Anchor::middle,
                            .upwards = true});
  picture.labels.push_back({"Epochs", {across, kBottom + 44}, kNormal, kInkColour, Anchor::middle});
}

void add_absence(const Layout& layout, Picture& picture) {
  const Point centre{(layout.left + kRight) / 2, (kTop + kBottom) / 2};
  picture.labels.push_back({"No values", centre, kNormal, kSoft, Anchor::middle});
}

Picture picture_of(const MetricPlot& plot) {
  const auto curves = curves_of(plot);
  const Layout layout = layout_of(plot, curves);
  Picture picture{.width = kWidth,
                  .height = kHeight,
                  .title = plot_title(plot.metric),
                  .description = description_of(plot, curves)};
  add_axes(layout, picture);
  add_names(layout, plot.metric, picture);
  for (const auto& curve : curves) add_curve(layout, curve, picture);
  add_legend(layout, curves, picture);
  if (curves.empty()) add_absence(layout, picture);
  return picture;
}

/// Returns the 32-bit FNV-1a hash, after Fowler, Noll and Vo, in hexadecimal.
std::string hash_text(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", hash);
  return digits;
}

}  // namespace

std::string plot_title(std::string_view metric) {
  return "Training and Validation " + capitalized(std::string(metric));
}

std::string plot_svg(const MetricPlot& plot) { return svg_file(picture_of(plot)); }

std::string plot_png(const MetricPlot& plot) { return png_file(picture_of(plot)); }

std::string plot_file_name(std::string_view metric) {
  constexpr size_t kBytes = 64;
  const auto safe = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  };
  std::string name(metric.substr(0, kBytes));
  std::ranges::replace_if(name, std::not_fn(safe), '_');
  if (name.starts_with('.')) name[0] = '_';
  if (!name.empty() && name == metric) return name;
  return (name.empty() ? "metric" : name) + '-' + hash_text(metric);
}

}  // namespace tare::report
