// Finds numbers whose spread float32 does not hold, such as 1e9 + 0.25 beside 1e9 + 0.75.
#pragma once

#include <span>
#include <string>

namespace tare {

/// Returns what float32 makes of these numbers, as the end of a sentence that begins with their
/// name, where its rounding (root mean square) is above a hundredth of their deviation; empty:
/// float32 holds them. NaN is skipped, and equal numbers have no spread to lose.
[[nodiscard]] std::string spread_problem(std::span<const double> numbers);

}  // namespace tare
