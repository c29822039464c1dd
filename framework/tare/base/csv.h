// CSV: how the logs write a field, and how their files are read. A record is always one line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Returns `text` as one field: control characters escaped as by printable(), which also cuts it at
/// `limit` bytes; an apostrophe before what a spreadsheet would take for a formula, which numbers
/// such as -0.5 are not; quoted if it must be.
[[nodiscard]] std::string csv_field(std::string_view text, size_t limit = 200);

/// Returns the text as a field for other programs, after RFC 4180: whole, with its line breaks, in
/// quotes. read_csv() does not read a field that has some.
[[nodiscard]] std::string csv_text(std::string_view text);

/// Calls `row` with the fields of each line of a file and its number from 1; empty lines are
/// skipped. Reads piece by piece, so the file may have any size. The fields are the call's own
/// until it returns. Throws IoError; FormatError, naming the line, for an unclosed quote or a line
/// above 64 KiB; and what `row` throws.
void read_csv(const std::filesystem::path& path,
              const std::function<void(const std::vector<std::string>& fields, size_t line)>& row);

}  // namespace tare
