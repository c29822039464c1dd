// How the text of a plain scalar reads: YAML 1.2's bool, integer and float forms, no others.
// Internal to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tare::config {

[[nodiscard]] std::optional<bool> as_bool(std::string_view text);  ///< true, false
[[nodiscard]] std::optional<int64_t> as_integer(
    std::string_view text);  ///< decimal, with an optional sign
[[nodiscard]] std::optional<uint64_t> as_count(std::string_view text);  ///< the same, >= 0
[[nodiscard]] std::optional<double> as_number(std::string_view text);   ///< also .inf, -.inf, .nan
/// The shortest text that as_number reads back to the same bits (NaN: to a NaN).
[[nodiscard]] std::string number_text(double value);
/// False for what some YAML reader takes for null, a bool, a number or a date when it stands
/// without quotes.
[[nodiscard]] bool reads_as_text(std::string_view text);

}  // namespace tare::config
