// What a run prints of a phase that has ended. Internal.
#pragma once

#include <string>

#include "tare/report/run_files.h"

namespace tare {

/// One line without a newline: time, samples/s, the best epoch, the memory.
[[nodiscard]] std::string phase_line(const PhaseReport& phase);

/// One line without a newline: how much leaked, and which options say more; empty without leaks.
[[nodiscard]] std::string leaks_line(const PhaseReport& phase);

}  // namespace tare
