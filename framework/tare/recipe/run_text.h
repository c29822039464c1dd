// What a run prints of a phase that has ended. Internal.
#pragma once

#include <string>

#include "tare/recipe/run.h"

namespace tare {

/// One line: time, samples/s, the best epoch, the memory. A second one, red with `colour`, where
/// there are leaks, unless `verbose`: then the experiment's report has listed them. Each ends with
/// a newline.
[[nodiscard]] std::string phase_text(const PhaseReport& phase, bool verbose, bool colour);

}  // namespace tare
