// What a run prints of a phase that has ended. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/report/run_files.h"

namespace tare {

/// One line without a newline: time, samples/s, the best epoch with `metrics`, the memory. Columns
/// of an epoch that are of no metric, such as those of a callback, are left out.
[[nodiscard]] std::string phase_line(const PhaseReport& phase,
                                     const std::vector<std::string>& metrics);

/// One line without a newline: how much leaked, and which options say more; empty without leaks.
[[nodiscard]] std::string leaks_line(const PhaseReport& phase);

}  // namespace tare
