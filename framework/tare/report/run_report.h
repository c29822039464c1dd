// The report of a run: its folder as one HTML page that needs nothing else.
#pragma once

#include <filesystem>
#include <string>

namespace tare::report {

/// Bounds the page: long curves are thinned out, long tables and texts cut.
inline constexpr size_t kMaxPageBytes = size_t{1} << 20;

/// Reads the folder of a run, `tare run` leaves it, and returns the page: loss and rate curves,
/// metrics, the table of phases, and, from `trace`/timeline.csv, memory by category over time, at
/// its peak, and what was never freed. `trace`: the folder given to --record-memory; empty: the
/// run's own, where it need not be. A run that has not ended gives a page that says what is
/// missing. The page holds no script and no reference, so opening it asks no network. Throws
/// IoError for a file that is missing or cannot be read, ConfigError for a folder without a run,
/// FormatError for a damaged file.
[[nodiscard]] std::string html_report(const std::filesystem::path& folder,
                                      const std::filesystem::path& trace = {});

}  // namespace tare::report
