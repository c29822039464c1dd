// The phases as ranges in a profiler, through NVTX: Nsight Systems shows them above the kernels.
#pragma once

#include "tare/runtime/plugin.h"

namespace tare::cuda {

/// Marks every phase as a range of the domain "tare" on its thread, under the phase's name, if a
/// tool that reads NVTX is attached to the process. Else it does nothing, now or later. `services`
/// must live until the process ends.
void mark_phases(runtime::HostServices& services);

}  // namespace tare::cuda
