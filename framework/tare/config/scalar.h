// How the text of a plain scalar is read: YAML 1.2's bool, integer and float forms, no others.
// Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tare::config {

[[nodiscard]] std::optional<bool> as_bool(std::string_view text);  ///< true, false
/// Reads a decimal integer with an optional sign.
[[nodiscard]] std::optional<int64_t> as_integer(std::string_view text);
[[nodiscard]] std::optional<uint64_t> as_count(std::string_view text);  ///< an integer >= 0
[[nodiscard]] std::optional<double> as_number(std::string_view text);   ///< also .inf, -.inf, .nan
/// Whether the text has the form of a number (a whole number, if `whole`) that is too large or too
/// small for what reads it. Call it for a text that as_integer, as_count or as_number refused.
[[nodiscard]] bool is_out_of_range(std::string_view text, bool whole);
/// Returns the shortest text that as_number reads back to the same bits (NaN: to a NaN).
[[nodiscard]] std::string number_text(double value);
/// Whether every YAML reader takes the unquoted text for text, not for null, a bool, a number or a
/// date.
[[nodiscard]] bool reads_as_text(std::string_view text);

}  // namespace tare::config
