// Chooses ranges, ticks and labels of axes.
#include "tare/report/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "tare/base/bytes.h"

namespace tare::report {
namespace {

/// Returns the next of 1, 2 and 5 times a power of ten that is not below `least`.
double decimal_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

double seconds_per_unit(double high) { return high < 180 ? 1 : high < 3 * 3600 ? 60 : 3600; }

double step_of(double low, double high, Unit unit, int count) {
  const double least = (high - low) / count;
  switch (unit) {
    case Unit::bytes:
      return std::exp2(std::max(0.0, std::ceil(std::log2(least) - 1e-9)));
    case Unit::count:
      return std::max(1.0, decimal_step(least));
    case Unit::seconds: {
      const double per_unit = seconds_per_unit(high);
      return decimal_step(least / per_unit) * per_unit;
    }
    case Unit::number:
      break;
  }
  return decimal_step(least);
}

std::string format(const char* pattern, double value) {
  char text[48];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// Formats a label with so many digits that ticks `step` apart differ where the largest has the
/// size `size`: at least 6, and no more than a double has.
std::string number_label(double value, double size, double step) {
  const double digits = std::ceil(std::log10(size / step)) + 1;
  char text[48];
  std::snprintf(text, sizeof text, "%.*g", static_cast<int>(std::clamp(digits, 6.0, 15.0)), value);
  return text;
}

std::string label_of(double value, const Axis& axis, double step, Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return format_bytes(static_cast<int64_t>(std::clamp(value, -9e18, 9e18)));
    case Unit::count:
      return format_count(static_cast<int64_t>(std::clamp(value, -9e18, 9e18)));
    case Unit::seconds: {
      const double per_unit = seconds_per_unit(axis.high);
      return format("%.6g", value / per_unit) + (per_unit == 1    ? " s"
                                                 : per_unit == 60 ? " min"
                                                                  : " h");
    }
    case Unit::number:
      break;
  }
  return number_label(value, std::max(std::abs(axis.low), std::abs(axis.high)), step);
}

void move_apart(double& low, double& high, Unit unit) {
  if (low < high) return;
  const bool whole = unit == Unit::count || unit == Unit::bytes;
  high = low + (whole || low == 0 ? 1 : 0.1 * std::abs(low));
}

Axis with_ticks(Axis axis, double step, Unit unit) {
  const auto first = static_cast<int64_t>(std::ceil(axis.low / step - 1e-6));
  const auto last = static_cast<int64_t>(std::floor(axis.high / step + 1e-6));
  for (int64_t i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    axis.ticks.push_back({value, label_of(value, axis, step, unit)});
  }
  return axis;
}

}  // namespace

double Axis::place(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Axis exact_axis(double low, double high, Unit unit, int count) {
  move_apart(low, high, unit);
  return with_ticks({.low = low, .high = high}, step_of(low, high, unit, count), unit);
}

Axis round_axis(double low, double high, Unit unit, int count) {
  move_apart(low, high, unit);
  const double step = step_of(low, high, unit, count);
  return with_ticks(
      {.low = std::floor(low / step + 1e-6) * step, .high = std::ceil(high / step - 1e-6) * step},
      step, unit);
}

Axis log_axis(double low, double high) {
  move_apart(low, high, Unit::number);
  const int from = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int to = std::max(from + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)));
  Axis axis{.low = std::pow(10, from), .high = std::pow(10, to), .logarithmic = true};
  const int every = (to - from + 4) / 5;
  const bool digits = from >= -4 && to <= 5;  // "0.0001" to "100000", else "1e-5"
  for (int power = from; power <= to; power += every) {
    const double value = std::pow(10, power);
    axis.ticks.push_back({value, digits ? format("%.6g", value) : "1e" + std::to_string(power)});
  }
  return axis;
}

}  // namespace tare::report
