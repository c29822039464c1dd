#include "tare/cli/gpu_rooms.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "tare/cuda/nvml.h"
#include "tare/memory/context.h"

namespace tare::cli {
namespace {

using sweep::DeviceRoom;

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

std::vector<DeviceRoom> gpu_rooms(const sweep::Resources& resources, const char* visible) {
  std::vector<DeviceRoom> cards;
  for (const auto& card : cuda::NvmlDevice::all()) {
    const auto memory = card.memory();
    cards.push_back({.name = card.uuid(),
                     .total_bytes = memory ? memory->free_bytes : 0,
                     .jobs = resources.max_per_gpu,
                     .context_bytes = memory::kContextBytes});
  }
  if (visible && *visible != '\0') cards = chosen(cards, visible);
  std::erase_if(cards, [](const DeviceRoom& room) {
    return room.name.empty() || room.total_bytes <= room.context_bytes;
  });
  return cards;
}

}  // namespace tare::cli
