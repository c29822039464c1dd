// Draws curves in rows of characters.
#include "tare/base/text_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tare {
namespace {

constexpr size_t kUsualWidth = 72, kLeastWidth = 30;

/// The range of one direction, and the cell that a value lies in.
struct Range {
  bool log = false;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  [[nodiscard]] double place(double value) const { return log ? std::log10(value) : value; }
  [[nodiscard]] bool takes(double value) const {
    return std::isfinite(value) && (!log || value > 0);
  }
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] size_t cell(double value, size_t cells) const {
    const double length = place(high) - place(low);
    const double share = length > 0 ? (place(value) - place(low)) / length : 0.5;
    return static_cast<size_t>(std::lround(share * static_cast<double>(cells - 1)));
  }
};

class Canvas {
 public:
  Canvas(size_t columns, size_t rows)
      : columns_(columns), rows_(rows), lines_(rows, std::string(columns, ' ')) {}

  void draw(const TextCurve& curve, const Range& x, const Range& y) {
    size_t last_column = 0, last_row = 0;
    bool has_last = false;
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
      if (!x.takes(curve.x[i]) || !y.takes(curve.y[i])) {
        has_last = false;
        continue;
      }
      const size_t column = x.cell(curve.x[i], columns_), row = y.cell(curve.y[i], rows_);
      // From one column to the next a steep curve would fall apart into dots.
      if (has_last && column <= last_column + 1)
        for (size_t r = std::min(row, last_row) + 1; r < std::max(row, last_row); ++r)
          put(column, r, curve.mark);
      put(column, row, curve.mark);
      last_column = column;
      last_row = row;
      has_last = true;
    }
  }
  /// Returns the line that is the `row`-th from the bottom, without blanks at its end.
  [[nodiscard]] std::string line(size_t row) const {
    const std::string& all = lines_[row];
    const size_t end = all.find_last_not_of(' ');
    return all.substr(0, end == std::string::npos ? 0 : end + 1);
  }

 private:
  void put(size_t column, size_t row, char mark) { lines_[row][column] = mark; }

  size_t columns_, rows_;
  std::vector<std::string> lines_;  // from the bottom
};

std::string padded(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string axis_line(const TextPlot& plot, const Range& x, size_t margin, size_t columns) {
  const std::string low = short_number(x.low), high = short_number(x.high);
  std::string between = plot.x_title;
  const size_t taken = low.size() + high.size();
  if (taken + between.size() + 2 > columns) between.clear();
  const size_t blanks = columns > taken + between.size() ? columns - taken - between.size() : 1;
  return std::string(margin + 1, ' ') + low + std::string(blanks / 2, ' ') + between +
         std::string(blanks - blanks / 2, ' ') + high + '\n';
}

}  // namespace

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string text_plot(const TextPlot& plot, size_t width) {
  Range x{.log = plot.log_x}, y{.log = plot.log_y};
  for (const TextCurve& curve : plot.curves)
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i)
      if (x.takes(curve.x[i]) && y.takes(curve.y[i])) {
        x.add(curve.x[i]);
        y.add(curve.y[i]);
      }
  if (!(x.low <= x.high)) return "";
  const std::string top = short_number(y.high), bottom = short_number(y.low);
  const size_t margin = std::max(top.size(), bottom.size()) + 1;
  const size_t wanted = width == kAnyWidth ? kUsualWidth : std::max(width, kLeastWidth);
  const size_t columns = wanted - margin - 1;
  Canvas canvas(columns, plot.rows);
  for (const TextCurve& curve : plot.curves) canvas.draw(curve, x, y);
  std::string text = plot.title.empty() ? "" : plot.title + '\n';
  for (size_t row = plot.rows; row-- > 0;) {
    const std::string label = row + 1 == plot.rows ? top : row == 0 ? bottom : "";
    text += padded(label, margin - 1) + " |" + canvas.line(row) + '\n';
  }
  text += std::string(margin, ' ') + '+' + std::string(columns, '-') + '\n';
  return text + axis_line(plot, x, margin, columns);
}

}  // namespace tare
