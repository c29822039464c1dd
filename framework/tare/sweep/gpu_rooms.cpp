#include "tare/sweep/gpu_rooms.h"

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

/// Those that "0,2" or "GPU-8f2b,GPU-41" name, in its order, up to the first that there is not, as
/// CUDA reads it.
std::vector<DeviceRoom> chosen(const std::vector<DeviceRoom>& cards, std::string_view visible) {
  std::vector<DeviceRoom> some;
  while (!visible.empty()) {
    const size_t comma = std::min(visible.find(','), visible.size());
    const std::string_view word = visible.substr(0, comma);
    visible.remove_prefix(std::min(comma + 1, visible.size()));
    const auto index = index_of(word);
    const auto card =
        index ? cards.begin() + static_cast<std::ptrdiff_t>(std::min(*index, cards.size()))
              : std::ranges::find_if(cards, [&](const DeviceRoom& room) {
                  return !word.empty() && room.name.starts_with(word);
                });
    if (card == cards.end()) break;
    some.push_back(*card);
  }
  return some;
}

}  // namespace

std::vector<DeviceRoom> visible_gpus(const char* visible) {
  std::vector<DeviceRoom> cards;
  for (const auto& card : cuda::NvmlDevice::all()) {
    const auto memory = card.memory();
    cards.push_back({.name = card.uuid(),
                     .total_bytes = memory ? memory->free_bytes : 0,
                     .context_bytes = memory::kContextBytes});
  }
  return visible && *visible != '\0' ? chosen(cards, visible) : cards;
}

bool has_room(const DeviceRoom& gpu) {
  return !gpu.name.empty() && gpu.total_bytes > gpu.context_bytes;
}

std::vector<DeviceRoom> gpu_rooms(const Resources& resources, const char* visible) {
  auto rooms = visible_gpus(visible);
  std::erase_if(rooms, [](const DeviceRoom& gpu) { return !has_room(gpu); });
  for (auto& room : rooms) room.jobs = resources.max_per_gpu;
  return rooms;
}

}  // namespace tare::sweep
