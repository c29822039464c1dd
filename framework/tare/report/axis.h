// Axis: the range of one direction of a chart and its ticks. Internal.
#pragma once

#include <string>
#include <vector>

namespace tare::report {

enum class Unit { number, count, bytes, seconds };

struct Tick {
  double value = 0;
  std::string label{};
};

/// Holds a range of values and its ticks. A value.
struct Axis {
  double low = 0, high = 1;  ///< low < high
  bool logarithmic = false;
  std::vector<Tick> ticks{};  ///< ascending, within the range

  /// Returns where a value lies: 0 at `low`, 1 at `high`.
  [[nodiscard]] double place(double value) const;
};

/// Makes an axis from `low` to `high`, which must be finite, with about `count` ticks at round
/// values: 1, 2 and 5 times powers of ten, powers of two for bytes, whole numbers for counts, and
/// seconds, minutes or hours, whichever fits. Equal ends are moved apart.
[[nodiscard]] Axis exact_axis(double low, double high, Unit unit, int count = 5);
/// Makes an axis with the ends moved outwards to ticks.
[[nodiscard]] Axis round_axis(double low, double high, Unit unit, int count = 4);
/// Makes a logarithmic axis for numbers with `low` > 0, its ends at ticks.
[[nodiscard]] Axis log_axis(double low, double high);

}  // namespace tare::report
