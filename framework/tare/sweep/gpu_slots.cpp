// Finds the GPUs of this machine that runs can use.
#include "tare/sweep/gpu_slots.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

/// A card or a slice of one, and how CUDA_VISIBLE_DEVICES may name it.
struct Gpu {
  launch::DeviceSlot slot;  // whose name is its UUID
  size_t card_number = 0;
  std::string uuid_of_card;

  [[nodiscard]] bool is_named(std::string_view word) const {
    if (const auto index = index_of(word)) return *index == card_number;
    return !word.empty() && (slot.name.starts_with(word) || uuid_of_card.starts_with(word));
  }
};

/// Returns what "0,2" or "GPU-8f2b,MIG-41" name, in its order, up to the first that there is not,
/// as CUDA reads it. A card that is divided stands for its slices.
std::vector<launch::DeviceSlot> chosen(const std::vector<Gpu>& gpus, std::string_view visible) {
  std::vector<launch::DeviceSlot> some;
  while (!visible.empty()) {
    const size_t comma = std::min(visible.find(','), visible.size());
    const std::string_view word = visible.substr(0, comma);
    visible.remove_prefix(std::min(comma + 1, visible.size()));
    const size_t before = some.size();
    for (const Gpu& gpu : gpus)
      if (gpu.is_named(word)) some.push_back(gpu.slot);
    if (some.size() == before) break;
  }
  return some;
}

/// Names the cards as CUDA counts them. Where the first is a slice CUDA shows no other.
std::vector<launch::DeviceSlot> counted(std::vector<launch::DeviceSlot> slots) {
  if (!slots.empty() && is_slice(slots.front())) return slots;
  size_t number = 0;
  for (auto& slot : slots)
    if (!is_slice(slot)) slot.device = "cuda:" + std::to_string(number++);
  return slots;
}

}  // namespace

bool is_slice(const launch::DeviceSlot& gpu) { return gpu.name.starts_with("MIG-"); }

std::vector<launch::DeviceSlot> visible_gpus(const char* visible) {
  std::vector<Gpu> gpus;
  for (const auto& device : cuda::NvmlDevice::all()) {
    const auto memory = device.memory();
    gpus.push_back({{.name = device.uuid(),
                     .total_bytes = memory ? memory->free_bytes : 0,
                     .context_bytes = memory::context_bytes(device.name()),
                     .kind = launch::SlotKind::gpu},
                    device.card_number(),
                    device.uuid_of_card()});
  }
  if (visible) return counted(chosen(gpus, visible));
  std::vector<launch::DeviceSlot> all;
  for (const Gpu& gpu : gpus) all.push_back(gpu.slot);
  return counted(std::move(all));
}

bool is_lost(const launch::DeviceSlot& gpu) {
  return std::ranges::none_of(cuda::NvmlDevice::all(), [&](const cuda::NvmlDevice& device) {
    return device.uuid() == gpu.name;
  });
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
