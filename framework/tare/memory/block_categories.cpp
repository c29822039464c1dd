// Infers what the blocks of an event history were for.
#include "tare/memory/block_categories.h"

#include <optional>

#include "tare/memory/backend.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

/// Returns the category of a block; `freed_in` is unset for a block that is still alive.
std::optional<Category> category_of(uint32_t allocated_in, std::optional<uint32_t> freed_in,
                                    bool library_workspace) {
  if (library_workspace) return Category::workspace;
  const bool passing = freed_in == allocated_in;
  switch (static_cast<PhaseKind>(allocated_in)) {
    case PhaseKind::none:
      return {};
    case PhaseKind::data:
      return Category::batch;
    case PhaseKind::forward:
      return passing ? Category::workspace : Category::activations;
    case PhaseKind::backward:
      return passing ? Category::workspace : Category::gradients;
    default:
      return allocated_in < kPhaseKinds ? std::optional(Category::workspace) : std::nullopt;
  }
}

}  // namespace

BlockCategories categories_now(c10::Device device, const Ledger& ledger) {
  std::unordered_map<const void*, Category> owned;
  for (const auto& entry : ledger.entries()) owned.emplace(entry.data, entry.category);
  BlockCategories categories;
  for (const auto& block : backend(device).live_blocks()) {
    const auto found = owned.find(block.data);
    if (found != owned.end()) categories.emplace(block.sequence, found->second);
  }
  return categories;
}

void assign_categories(EventHistory& history, const BlockCategories& known) {
  auto& categories = history.categories;
  categories.clear();
  const auto assign = [&](uint64_t block, std::optional<Category> by_phases) {
    const auto found = known.find(block);
    const auto category = found != known.end() ? std::optional(found->second) : by_phases;
    if (category) categories.emplace(block, *category);
  };
  for (const auto& event : history.events)
    if (event.kind == EventKind::free)
      assign(event.block, category_of(event.allocated_in, event.phase, event.library_workspace));
  for (const auto& block : history.alive)
    assign(block.sequence, category_of(block.phase, std::nullopt, block.library_workspace));
}

const char* category_name(const EventHistory& history, uint64_t block) {
  const auto found = history.categories.find(block);
  return found == history.categories.end() ? "unknown" : to_string(found->second);
}

}  // namespace tare::memory
