// Formats the lines that a run prints for a phase that has ended. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/report/run_files.h"

namespace tare {

/// Returns one line without a newline: time, samples/s, the best epoch with `metrics`, the memory.
/// Columns of an epoch that are of no metric, such as those of a callback, are skipped.
[[nodiscard]] std::string phase_line(const PhaseReport& phase,
                                     const std::vector<std::string>& metrics);

/// Returns one line without a newline: how much leaked, and which options show more; empty without
/// leaks.
[[nodiscard]] std::string leaks_line(const PhaseReport& phase);

}  // namespace tare
