// Finds the GPUs of this machine that runs can use.
#include "tare/sweep/gpu_slots.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "tare/cuda/nvml.h"
#include "tare/memory/context.h"

namespace tare::sweep {
namespace {

std::optional<size_t> index_of(std::string_view word) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return index;
}

/// Returns the cards that "0,2" or "GPU-8f2b,GPU-41" name, in its order, up to the first that there
/// is not, as CUDA reads it.
std::vector<launch::DeviceSlot> chosen(const std::vector<launch::DeviceSlot>& cards,
                                       std::string_view visible) {
  std::vector<launch::DeviceSlot> some;
  while (!visible.empty()) {
    const size_t comma = std::min(visible.find(','), visible.size());
    const std::string_view word = visible.substr(0, comma);
    visible.remove_prefix(std::min(comma + 1, visible.size()));
    const auto index = index_of(word);
    const auto card =
        index ? cards.begin() + static_cast<std::ptrdiff_t>(std::min(*index, cards.size()))
              : std::ranges::find_if(cards, [&](const launch::DeviceSlot& slot) {
                  return !word.empty() && slot.name.starts_with(word);
                });
    if (card == cards.end()) break;
    some.push_back(*card);
  }
  return some;
}

}  // namespace

std::vector<launch::DeviceSlot> visible_gpus(const char* visible) {
  std::vector<launch::DeviceSlot> cards;
  for (const auto& card : cuda::NvmlDevice::all()) {
    const auto memory = card.memory();
    cards.push_back({.name = card.uuid(),
                     .total_bytes = memory ? memory->free_bytes : 0,
                     .context_bytes = memory::kContextBytes,
                     .kind = launch::SlotKind::gpu});
  }
  return visible && *visible != '\0' ? chosen(cards, visible) : cards;
}

bool has_capacity(const launch::DeviceSlot& gpu) {
  return !gpu.name.empty() && gpu.total_bytes > gpu.context_bytes;
}

std::vector<launch::DeviceSlot> gpu_slots(const Resources& resources, const char* visible) {
  auto slots = visible_gpus(visible);
  std::erase_if(slots, [](const launch::DeviceSlot& gpu) { return !has_capacity(gpu); });
  for (auto& slot : slots) slot.jobs = resources.max_per_gpu;
  return slots;
}

}  // namespace tare::sweep
