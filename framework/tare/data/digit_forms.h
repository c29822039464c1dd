// The strokes of the generated digits, in a unit square, x to the right, y down. Internal.
#pragma once

#include <vector>

namespace tare {

struct StrokePoint {
  float x, y;
};
struct Stroke {
  bool smooth;  ///< a curve through the points (Catmull-Rom), else straight lines
  std::vector<StrokePoint> points;
};
struct DigitForm {
  float aspect;  ///< width over height
  std::vector<Stroke> strokes;
};

/// Returns the ways in which `digit` (0 to 9) is drawn: at least one.
[[nodiscard]] const std::vector<DigitForm>& digit_forms(bool written, int digit);

}  // namespace tare
