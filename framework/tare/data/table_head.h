// Looks at the first line of a table without reading the rest. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tare {

/// Whether the first line of a CSV or TSV file, as far as it lies in the first 64 KiB, names a
/// column. Throws IoError.
[[nodiscard]] bool head_names(const std::filesystem::path& file, std::string_view column);

/// Whether the first line of a CSV or TSV file names a column.
[[nodiscard]] bool names_column(std::string_view head, std::string_view column);

/// Returns the first line of a file, as far as it lies in the first 64 KiB. Throws IoError.
[[nodiscard]] std::string first_line(const std::filesystem::path& file);

}  // namespace tare
