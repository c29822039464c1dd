// Which runs go where: admission by memory. A pure function of what is known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tare/launch/device_slot.h"

namespace tare::sweep {

/// Describes a run that occupies devices now.
struct Placed {
  std::vector<size_t> devices{};  ///< indices of its slots, each once
  int64_t bytes = 0;              ///< reserved on each of them
};

/// Describes a run that waits, in the order of the queue.
struct Waiting {
  int64_t bytes = 0;        ///< to reserve on each device; more than there is: it runs alone
  int64_t passed_over = 0;  ///< runs behind it that were started before it
};

/// Selects the waiting run that starts next, and its slots.
struct Choice {
  size_t waiting = 0;             ///< index in the queue
  std::vector<size_t> devices{};  ///< indices of the slots, ascending
  int64_t bytes = 0;              ///< to reserve on each: as asked, or all that they have
};

/// Counts how often a run is passed over until it is next, whatever else would fit.
inline constexpr int64_t kPatience = 16;

/// Returns the bytes that each of `count` >= 1 devices has at least, if they are the largest ones;
/// 0: there are fewer.
[[nodiscard]] int64_t most_on_each(const std::vector<launch::DeviceSlot>& devices, size_t count);

/// Returns the next run to start, if any can: the first in the queue that fits on `count` devices
/// at once, on those where it leaves the fewest bytes; nothing else once one of the queue has run
/// out of patience. No run holds a device while it waits for another one. A run that asks for more
/// than so many devices have takes the largest ones alone. Never above a device's total.
[[nodiscard]] std::optional<Choice> next_start(const std::vector<launch::DeviceSlot>& devices,
                                               const std::vector<Placed>& running,
                                               const std::vector<Waiting>& queue, size_t count = 1);

}  // namespace tare::sweep
