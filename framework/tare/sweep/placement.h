// Which runs go where: admission by memory. A pure function of what is known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tare/launch/device_slot.h"

namespace tare::sweep {

/// Describes a run that occupies a device now.
struct Placed {
  size_t device = 0;  ///< index of its slot
  int64_t bytes = 0;  ///< reserved
};

/// Describes a run that waits, in the order of the queue.
struct Waiting {
  int64_t bytes = 0;        ///< to reserve; at most the largest device's, else it runs alone
  int64_t passed_over = 0;  ///< runs behind it that were started before it
};

/// Selects the waiting run that starts next, and its slot.
struct Choice {
  size_t waiting = 0, device = 0;  ///< index in the queue; index of the slot
  int64_t bytes = 0;               ///< to reserve: as asked, or all of the device
};

/// Counts how often a run is passed over until it is next, whatever else would fit.
inline constexpr int64_t kPatience = 16;

/// Returns the next run to start, if any can: the first in the queue that fits somewhere, on the
/// device where it leaves the fewest bytes; nothing else once one of the queue has run out of
/// patience. A run that asks for more than any device has takes the largest one alone. Never above
/// a device's total.
[[nodiscard]] std::optional<Choice> next_start(const std::vector<launch::DeviceSlot>& devices,
                                               const std::vector<Placed>& running,
                                               const std::vector<Waiting>& queue);

}  // namespace tare::sweep
