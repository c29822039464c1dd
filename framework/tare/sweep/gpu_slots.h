// The GPUs of this machine as slots for the runs of a sweep.
#pragma once

#include <vector>

#include "tare/sweep/placement.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Returns the cards that `visible` names, in its order, which is that of CUDA's indices, by which
/// DeviceSlot::device names them, but no slices, of which CUDA shows one alone; each with
/// the memory that is free on it now, from NVIDIA's management library: this process gets no
/// context on any. Each slice of a card that MIG divides is a card of its own. `visible` is
/// CUDA_VISIBLE_DEVICES; null: every card; empty: none; numbers count by PCI bus, as init() has
/// CUDA count.
[[nodiscard]] std::vector<launch::DeviceSlot> visible_gpus(const char* visible);

/// Whether it is a slice of a card that MIG divides.
[[nodiscard]] bool is_slice(const launch::DeviceSlot& gpu);

/// Whether NVIDIA's library has the card or slice no longer: it fell off the bus, or was divided
/// anew.
[[nodiscard]] bool is_lost(const launch::DeviceSlot& gpu);

/// Whether runs can be placed there: the card has a name, and more is free than a context takes.
[[nodiscard]] bool has_capacity(const launch::DeviceSlot& gpu);

/// Returns the slots of the cards of visible_gpus() that have memory left, each for
/// Resources::max_per_gpu runs. Empty without a card.
[[nodiscard]] std::vector<launch::DeviceSlot> gpu_slots(const Resources& resources,
                                                        const char* visible);

}  // namespace tare::sweep
