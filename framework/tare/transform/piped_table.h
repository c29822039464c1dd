// Reads a table whose bytes are in memory, such as those of standard input. Internal.
#pragma once

#include <string>
#include <string_view>

namespace tare {

struct TableFindings;
struct TableFormat;
class TableText;

/// Reads a table as read_table() does, from its text. `path`: its name in messages; "-": standard
/// input.
[[nodiscard]] TableText table_in(std::string_view text, const std::string& path,
                                 const TableFormat& format, TableFindings* findings);

}  // namespace tare
