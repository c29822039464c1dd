// Assigns categories to the blocks of an event history, so that a timeline can be drawn by them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <unordered_map>

#include "tare/memory/accountable.h"
#include "tare/memory/event_history.h"

namespace tare::memory {

/// Categories by LiveBlock::sequence.
using BlockCategories = std::unordered_map<uint64_t, Category>;

/// Returns the live blocks of a device that are in a ledger. To be taken while the log runs: what
/// is freed is in no ledger.
[[nodiscard]] BlockCategories categories_now(c10::Device device, const Ledger& ledger);

/// Fills `history.categories`. A block in `known` has the category it has there; what a library of
/// the device keeps (LiveBlock::library_workspace) is workspace. The others go by the phases in
/// which they were allocated and freed: `data` makes a batch; `forward` activations, or workspace
/// if they are freed in it; `backward` gradients, or workspace likewise; `step` and the other
/// phases of PhaseKind workspace. Blocks of phase `none` and of phases of your own get none. So a
/// temporary that is freed after its forward counts as an activation.
void assign_categories(EventHistory& history, const BlockCategories& known);

/// Returns "activations"; "unknown" for a block without a category.
[[nodiscard]] const char* category_name(const EventHistory& history, uint64_t block);

}  // namespace tare::memory
