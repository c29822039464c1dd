// The part of a run's page that shows its allocations over time. Internal.
#pragma once

#include <string>

#include "tare/report/read_run.h"

namespace tare::report {

/// Returns charts of the bytes by category over time, by phase and at the peak; a note, if the run
/// has no record.
[[nodiscard]] std::string memory_of(const RunFiles& run);
/// Returns a table of what was alive when the record ended, by category and phase of birth.
[[nodiscard]] std::string left_table(const Timeline& t);

}  // namespace tare::report
