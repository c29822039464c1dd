// Text for SVG and HTML: escaping, coordinates, tables. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tare::report {

/// Returns `text` as content or quoted attribute: markup characters escaped, and printable(text,
/// limit).
[[nodiscard]] std::string escaped(std::string_view text, size_t limit = 200);
/// Escapes text of several lines, of which the first `limit` bytes are kept.
[[nodiscard]] std::string escaped_lines(std::string_view text, size_t limit);

/// Formats a coordinate with at most one decimal: "12.5", "-3".
[[nodiscard]] std::string coordinate(double value);
/// Returns `share` of 1 as "12.5%".
[[nodiscard]] std::string percent(double share);
/// Returns four significant digits; "-" for NaN, which the files hold where there is no value.
[[nodiscard]] std::string figure(double value);

/// Returns at most `limit` bytes from the end, where dotted names differ most: "...weight_decay". A
/// name that is cut begins at one of its parts where that costs no more than half.
[[nodiscard]] std::string tail(std::string_view text, size_t limit);

/// Returns the name with a capital at the start, unless the name has one anywhere.
[[nodiscard]] std::string capitalized(std::string name);

/// Rows of a table as a rule; names are cut at kNameBytes.
inline constexpr size_t kTableRows = 200, kNameBytes = 80;

/// Returns an HTML table in a frame that scrolls sideways where it is too narrow. The first column
/// is text, the others are figures. Cells are escaped here. `name` is for screen readers. Rows
/// beyond `limit` are counted.
[[nodiscard]] std::string table(std::string_view name, const std::vector<std::string>& head,
                                const std::vector<std::vector<std::string>>& rows,
                                size_t limit = kTableRows);

}  // namespace tare::report
