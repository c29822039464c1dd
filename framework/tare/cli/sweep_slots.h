// Finds the places for the runs of a sweep, and sets up this process for their plans.
#pragma once

#include <string>
#include <vector>

#include "tare/launch/executor.h"
#include "tare/sweep/sweep_options.h"

namespace tare::cli {

/// Names the card of a run in the process of the run, which sees no other.
inline constexpr const char* kCardOfRun = "cuda:0";

/// Whether a recipe's device is a card by its number, among those that the user sees.
[[nodiscard]] bool names_card(const std::string& device);

/// Finds the slots of the executor where it has slots of its own; else the cards that take runs, of
/// which the recipe's device may name one; else the host. Calls init() with the threads of a run,
/// so that plans are for the first slot: of cards CUDA_VISIBLE_DEVICES then names those of the
/// slots. Warns of each card that takes no runs. Throws ConfigError, DeviceError or, for want of
/// memory, DoesNotFit where the recipe asks for a card, and none that it means takes runs.
[[nodiscard]] std::vector<launch::DeviceSlot> prepared_slots(const sweep::SweepOptions& sweep,
                                                             const launch::Executor& executor);

/// Finds the slots once more, for other resources. `prepared`: what prepared_slots() has returned,
/// by which the cards keep their numbers.
[[nodiscard]] std::vector<launch::DeviceSlot> slots_of(
    const sweep::SweepOptions& sweep, const launch::Executor& executor,
    const sweep::Resources& resources, const std::vector<launch::DeviceSlot>& prepared);

}  // namespace tare::cli
