// Draws the titles, ticks and labels around a chart.
#include "tare/report/frame.h"

#include "tare/report/markup.h"

namespace tare::report {

std::string head(const std::string& title, const std::string& description, double height,
                 bool gutter) {
  return std::string("<svg class=\"chart") + (gutter ? " gutter" : "") +
         "\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" height=\"" +
         coordinate(height) + "\"><title>" + escaped(title) + "</title><desc>" +
         escaped(description, 1000) + "</desc>";
}

std::string plot(const Frame& frame, const std::string& content, double units) {
  return "<svg y=\"" + coordinate(frame.top) + "\" width=\"100%\" height=\"" +
         coordinate(frame.height) + "\" viewBox=\"0 0 " + coordinate(kUnits) + ' ' +
         coordinate(units) + "\" overflow=\"visible\" preserveAspectRatio=\"none\">" + content +
         "</svg>";
}

std::string y_ticks(const Axis& axis, const Frame& frame) {
  std::string text;
  for (const auto& tick : axis.ticks) {
    const double y = frame.bottom() - frame.height * axis.place(tick.value);
    text += "<line class=\"grid\" x2=\"100%\" y1=\"" + coordinate(y) + "\" y2=\"" + coordinate(y) +
            "\"/><text x=\"-8\" text-anchor=\"end\" y=\"" + coordinate(y + 4) + "\">" +
            escaped(tick.label) + "</text>";
  }
  return text;
}

std::string x_labels(const Axis& axis, const Frame& frame, bool inside) {
  constexpr size_t kWideStart = 3, kWideEnd = 6;  // letters that would reach over the plot's ends
  std::string text;
  for (const auto& tick : axis.ticks) {
    const double place = axis.place(tick.value);
    const size_t letters = tick.label.size();
    const bool start = place < 0.05 && (inside || letters > kWideStart);
    const bool end = place > 0.95 && (inside || letters > kWideEnd);
    const char* anchor = start ? "start" : end ? "end" : "middle";
    text += "<text x=\"" + percent(place) + "\" y=\"" + coordinate(frame.bottom() + 17) +
            "\" text-anchor=\"" + anchor + "\">" + escaped(tick.label) + "</text>";
  }
  return text;
}

std::string axis_titles(const std::string& x, const std::string& y, const Frame& frame) {
  std::string text;
  if (!y.empty())
    text += "<text class=\"axis\" x=\"-58\" y=\"12\">" + escaped(y, kNameBytes) + "</text>";
  if (!x.empty())
    text += "<text class=\"axis\" x=\"50%\" text-anchor=\"middle\" y=\"" +
            coordinate(frame.bottom() + kTickRow + 12) + "\">" + escaped(x, kNameBytes) + "</text>";
  return text;
}

Axis value_axis(const Range& range, Unit unit, int count) {
  constexpr double kLogRatio = 50;
  if (unit == Unit::number && range.low > 0 && range.high > kLogRatio * range.low)
    return log_axis(range.low, range.high);
  return round_axis(range.low, range.high, unit, count);
}

}  // namespace tare::report
