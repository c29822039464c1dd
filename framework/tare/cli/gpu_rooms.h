// The GPUs of this machine as rooms for the runs of a sweep.
#pragma once

#include <string>
#include <vector>

#include "tare/sweep/placement.h"
#include "tare/sweep/sweep_options.h"

namespace tare::cli {

/// The cards that may be used, with the memory that is free on them now, from NVIDIA's management
/// library: this process gets no context on any. `visible` is CUDA_VISIBLE_DEVICES, null or empty:
/// every card; numbers count by PCI bus, as init() has CUDA count. Empty without a card.
[[nodiscard]] std::vector<sweep::DeviceRoom> gpu_rooms(const sweep::Resources& resources,
                                                       const char* visible);

}  // namespace tare::cli
