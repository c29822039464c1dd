// Where a run was made, for its report. Internal.
#pragma once

#include <c10/core/Device.h>

#include "tare/report/run_files.h"

namespace tare {

/// Returns versions, processor and memory of this machine, and the name of `device`.
[[nodiscard]] Machine this_machine(c10::Device device);

}  // namespace tare
