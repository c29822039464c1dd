// The part of a run's page that shows its allocations over time. Internal.
#pragma once

#include <string>

#include "tare/report/read_run.h"

namespace tare::report {

/// Bytes by category over time, by phase, and at the peak; a note without a record of the run.
[[nodiscard]] std::string memory_of(const RunFiles& run);
/// What was alive when the record ended, by category and phase of birth.
[[nodiscard]] std::string left_table(const Timeline& t);

}  // namespace tare::report
