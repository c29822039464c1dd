// What runs share and what each of them gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/sweep/grid.h"
#include "tare/sweep/placement.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// The settings of one cell for `tare run`: SweepOptions::set, the cell, folder and name.
[[nodiscard]] std::vector<std::string> settings_of(const SweepOptions& sweep, const Cell& cell,
                                                   const std::string& run_name);

/// What the runs of a sweep share: cores and memory of this machine.
[[nodiscard]] DeviceRoom host_room(const Resources& resources);

/// Threads that each run gets of this machine's cores, at least 1.
[[nodiscard]] int64_t threads_of_run(const DeviceRoom& room);

/// Bytes to reserve for a run: its declared memory, or a tenth above the prediction; 0 without
/// either.
[[nodiscard]] int64_t reservation(const SweepOptions& sweep, std::optional<int64_t> predicted);

/// What a run that has failed asks for when it is tried again: one that was out of memory half as
/// much more, at last all of the room; one that was killed the same. Unset: it would fail again, or
/// has been tried often enough.
[[nodiscard]] std::optional<int64_t> asked_again(const OnFailure& limits, const Trial& trial,
                                                 int64_t reserved_bytes, int64_t room_bytes,
                                                 const Outcome& outcome);

}  // namespace tare::sweep
