// Draws lines, areas and bars as SVG.
#include "tare/report/chart.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "tare/report/frame.h"
#include "tare/report/markup.h"

namespace tare::report {
namespace {

constexpr double kSpanRow = 18;  // of the spans' names, in pixels
constexpr size_t kSpans = 60;    // more would have no space for their names

/// Whether at least six letters can be read on a narrow page, or all if there are fewer.
bool is_legible(const std::string& name, double share) {
  return kNarrowPlot * share >= kLetter * static_cast<double>(std::min<size_t>(name.size(), 6)) + 4;
}

/// Returns in how many rows the names stand.
size_t span_rows(const std::vector<Span>& spans, const Axis& axis) {
  if (spans.empty()) return 0;
  const auto fits = [&](const Span& span) {
    return kNarrowPlot * (axis.place(span.end) - axis.place(span.start)) >=
           kLetter * static_cast<double>(span.name.size()) + 4;
  };
  return std::ranges::all_of(spans, fits) ? 1 : 2;
}

/// Draws the names; each is clipped where the next one of its row begins, and skipped where too
/// little of it would be left.
std::string span_names(const std::vector<Span>& spans, const Axis& axis, const Frame& frame,
                       double top) {
  const size_t rows = span_rows(spans, axis);
  std::string lines, text;
  for (size_t i = 0; i < std::min(spans.size(), kSpans); ++i) {
    const Span& span = spans[i];
    const double limit = i + rows < spans.size() ? spans[i + rows].start : axis.high;
    const double start = std::clamp(axis.place(span.start), 0.0, 1.0);
    const double end = std::clamp(axis.place(limit), start, 1.0);
    const double y = top + kSpanRow * static_cast<double>(i % std::max<size_t>(rows, 1));
    if (start > 0) {
      lines += "<line class=\"span\" x1=\"" + percent(start) + "\" x2=\"" + percent(start) +
               "\" y1=\"" + coordinate(y) + "\" y2=\"" + coordinate(frame.bottom()) + "\"/>";
    }
    if (!is_legible(span.name, end - start)) continue;
    text += "<svg x=\"" + percent(start) + "\" y=\"" + coordinate(y) + "\" width=\"" +
            percent(end - start) + "\" height=\"" + coordinate(kSpanRow) +
            "\"><text class=\"name\" x=\"" + (start > 0 ? "4" : "0") + "\" y=\"12\">" +
            escaped(span.name, kNameBytes) + "</text></svg>";
  }
  return lines + text;  // a name lies over the lines that cross it
}

std::string stroke(const Series& series) {
  return " class=\"line s" + std::to_string(series.colour % kColours) +
         (series.dashed ? " dash" : "") + '"';
}

/// Draws a dot that stays round although the view box is stretched: a line of no length.
std::string dot(const Series& series, double x, double y) {
  return "<path class=\"dot s" + std::to_string(series.colour % kColours) + "\" d=\"M" +
         coordinate(x) + ' ' + coordinate(y) + "h0\"/>";
}

/// Returns where a value lies in the view box.
Point placed(const Point& point, const Axis& x_axis, const Axis& y_axis) {
  return {kUnits * x_axis.place(point.x), kUnits * (1 - y_axis.place(point.y))};
}

/// Draws all points as one path, each a line of no length.
std::string dots(const Series& series, const Axis& x_axis, const Axis& y_axis) {
  std::vector<Point> apart;
  for (const auto& point : series.points) {
    if (!finite(point)) continue;
    apart.push_back(placed(point, x_axis, y_axis));
    apart.push_back({std::nan(""), std::nan("")});
  }
  return "<path class=\"dot s" + std::to_string(series.colour % kColours) + "\" d=\"" +
         relative_path(apart) + "\"/>";
}

/// Draws a line; `dots_too` shows the points too, if they are few.
std::string line(const Series& series, const Axis& x_axis, const Axis& y_axis, bool dots_too) {
  constexpr size_t kDots = 60;
  if (series.mark == Mark::dots) return dots(series, x_axis, y_axis);
  const bool few = dots_too && series.mark == Mark::automatic && series.points.size() <= kDots;
  std::string path, ends;
  bool pen_down = false;
  for (const auto& point : thinned(series.points)) {
    if (!finite(point)) {
      pen_down = false;
      continue;
    }
    const auto [x, y] = placed(point, x_axis, y_axis);
    path += (pen_down ? 'L' : 'M') + coordinate(x) + ' ' + coordinate(y);
    pen_down = true;
    if (few) ends += dot(series, x, y);
  }
  return "<path" + stroke(series) + " d=\"" + path + "\"/>" + ends;
}

/// Draws the area between the x axis and `tops`, shares of the plot's height.
std::string area(const Layer& layer, const std::vector<double>& x, const std::vector<double>& tops,
                 const Axis& x_axis) {
  std::string path = "M" + coordinate(kUnits * x_axis.place(x.front())) + " 1000";
  for (size_t i = 0; i < x.size(); ++i)
    path +=
        'L' + coordinate(kUnits * x_axis.place(x[i])) + ' ' + coordinate(kUnits * (1 - tops[i]));
  return "<path class=\"area f" + std::to_string(layer.colour % kColours) + "\" d=\"" + path + 'L' +
         coordinate(kUnits * x_axis.place(x.back())) + " 1000Z\"><title>" + escaped(layer.name) +
         "</title></path>";
}

}  // namespace

std::string line_chart(const LineChart& chart) {
  Range xs, ys;
  for (const auto& series : chart.series) {
    for (const auto& point : series.points) {
      if (!finite(point)) continue;
      xs.add(point.x);
      ys.add(point.y);
    }
  }
  if (xs.low > xs.high) return {};
  for (const auto& span : chart.spans) {
    xs.add(span.start);
    xs.add(span.end);
  }
  // Each of few epochs or runs has its label.
  const bool few = chart.x_unit == Unit::count && xs.high - xs.low <= 10;
  const Axis x_axis = chart.x_logarithmic ? log_axis(xs.low, xs.high)
                                          : exact_axis(xs.low, xs.high, chart.x_unit, few ? 10 : 5);
  const Axis y_axis = value_axis(ys, chart.y_unit);
  const double names = chart.y_title.empty() ? 0 : kTitleRow;  // above the rows of names
  const double rows = kSpanRow * static_cast<double>(span_rows(chart.spans, x_axis));
  const Frame frame{.top = kAbove + names + rows};
  std::string lines;
  for (const auto& series : chart.series) lines += line(series, x_axis, y_axis, true);
  const double below = kTickRow + (chart.x_title.empty() ? 0 : kTitleRow);
  return head(chart.title, chart.description, frame.bottom() + below, true) +
         y_ticks(y_axis, frame) + span_names(chart.spans, x_axis, frame, names) +
         plot(frame, lines) + x_labels(x_axis, frame) +
         axis_titles(chart.x_title, chart.y_title, frame) + "</svg>";
}

std::string area_chart(const AreaChart& chart) {
  if (chart.x.size() < 2) return {};
  std::vector<std::vector<double>> sums;  // sums[i]: of the layers 0 to i
  std::vector<double> sum(chart.x.size());
  for (const auto& layer : chart.layers) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += layer.values[i];
    sums.push_back(sum);
  }
  const double highest = *std::ranges::max_element(sum);
  const Axis x_axis = exact_axis(chart.x.front(), chart.x.back(), chart.x_unit);
  const Axis y_axis =
      chart.y_axis ? round_axis(0, highest, chart.y_unit) : Axis{.high = highest > 0 ? highest : 1};
  const double names = chart.y_title.empty() ? 0 : kTitleRow;
  const Frame frame{.top = (chart.y_axis ? kAbove : 0) + names,
                    .height = static_cast<double>(chart.height)};
  std::string areas;
  for (size_t i = chart.layers.size(); i-- > 0;) {  // from the top down: each covers those behind
    std::ranges::transform(sums[i], sums[i].begin(), [&](double y) { return y_axis.place(y); });
    areas += area(chart.layers[i], chart.x, sums[i], x_axis);
  }
  if (!chart.line.points.empty()) areas += line(chart.line, x_axis, y_axis, false);
  const double below = kTickRow + (chart.x_title.empty() ? 0 : kTitleRow);
  return head(chart.title, chart.description, frame.bottom() + below, true) +
         y_ticks(y_axis, frame) + plot(frame, areas) + x_labels(x_axis, frame) +
         axis_titles(chart.x_title, chart.y_title, frame) + "</svg>";
}

std::string bar_chart(const BarChart& chart) {
  if (chart.bars.empty()) return {};
  constexpr double kRow = 40, kBar = 14;
  const std::span bars = std::span(chart.bars).first(std::min(chart.bars.size(), kTableRows));
  double longest = 0;
  for (const auto& bar : bars) longest = std::max(longest, bar.value);
  std::string text =
      head(chart.title, chart.description, kRow * static_cast<double>(bars.size()), false);
  double y = 0;
  for (const auto& bar : bars) {
    const std::string row = coordinate(y + 14);
    text += "<text y=\"" + row + "\">" + escaped(bar.label, kNameBytes);
    text += "</text><text class=\"value\" x=\"100%\" text-anchor=\"end\" y=\"" + row + "\">";
    text += escaped(bar.text) + "</text><rect class=\"track\" width=\"100%\" rx=\"3\" y=\"" +
            coordinate(y + 19) + "\" height=\"" + coordinate(kBar) + "\"/><rect class=\"f" +
            std::to_string(bar.colour % kColours) + "\" rx=\"3\" y=\"" + coordinate(y + 19) +
            "\" height=\"" + coordinate(kBar) + "\" width=\"" +
            percent(longest > 0 ? bar.value / longest : 0) + "\"/>";
    y += kRow;
  }
  return text + "</svg>";
}

std::string legend(const std::vector<LegendItem>& items) {
  std::string text = "<ul class=\"legend\">";
  for (const auto& item : items) {
    const std::string colour = std::to_string(item.colour % kColours);
    text += "<li><svg width=\"18\" height=\"12\" aria-hidden=\"true\">";
    text +=
        item.line
            ? "<path class=\"line s" + colour + (item.dashed ? " dash" : "") + "\" d=\"M0 6h18\"/>"
            : "<rect class=\"f" + colour + "\" x=\"3\" width=\"12\" height=\"12\" rx=\"3\"/>";
    text += "</svg>" + escaped(item.name) + "</li>";
  }
  return text + "</ul>";
}

std::string chart_style() {
  const char* dark[kColours] = {"#3d9be0", "#8fd0f7", "#f07f3a", "#f3b73e", "#2fc79a", "#e39cc4",
                                "#eadf62", "#b98a5c", "#8d80e8", "#7d858e", "#ffffff"};
  std::string variables = ":root{", night = "@media(prefers-color-scheme:dark){:root{", classes;
  for (size_t i = 0; i < kColours; ++i) {
    const std::string number = std::to_string(i), name = "--c" + number;
    variables += name + ':' + kOnWhite[i] + ';';
    night += name + ':' + dark[i] + ';';
    classes.append(".s").append(number).append("{stroke:var(").append(name).append(")}");
    classes.append(".f").append(number).append("{fill:var(").append(name).append(")}");
  }
  return variables + "}" + night + "}}" + classes +
         ".chart{display:block;overflow:visible}"
         ".chart text{font-size:12px;fill:var(--soft)}"
         ".gutter{padding-left:58px}"
         ".chart .name{font-weight:600;paint-order:stroke;stroke:var(--card);stroke-width:5px;"
         "stroke-linejoin:round}.chart .axis{font-style:italic}.chart "
         ".value{fill:var(--ink)}"
         ".grid{stroke:var(--rule)}.span{stroke:var(--soft);stroke-dasharray:2 3}"
         ".track{fill:var(--rule);opacity:.45}"
         ".line{fill:none;stroke-width:2;stroke-linejoin:round;vector-effect:non-scaling-stroke}"
         ".dash{stroke-dasharray:5 4}"
         ".dot{stroke-width:6;stroke-linecap:round;vector-effect:non-scaling-stroke}"
         ".area{stroke:var(--card);stroke-width:.7;vector-effect:non-scaling-stroke}"
         ".legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:8px 0 0;"
         "padding:0;font-size:13px}.legend svg{margin-right:6px;vertical-align:-1px}";
}

}  // namespace tare::report
