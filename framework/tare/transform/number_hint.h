// Says what a field without a number looks like, and what to write instead.
#pragma once

#include <string>
#include <string_view>

namespace tare {

/// Names what people write in place of a number.
enum class NumberLike {
  none,   ///< nothing of these
  comma,  ///< a number with one comma: 1,5 or 1.234,5
  date    ///< 2024-01-31, 31.01.2024, 1/31/2024, each also with a time
};
/// Returns what a field that is no number looks like.
[[nodiscard]] NumberLike number_like(std::string_view field);
/// Returns what to write in place of a field that number_of() does not read, as a clause without a
/// full stop.
[[nodiscard]] std::string number_hint(std::string_view field);

}  // namespace tare
