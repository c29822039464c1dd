// Chooses the run that starts next, and its devices.
#include "tare/sweep/placement.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tare::sweep {
namespace {

struct Free {
  int64_t bytes = 0, jobs = 0;
};

std::vector<Free> free_of(const std::vector<launch::DeviceSlot>& devices,
                          const std::vector<Placed>& running) {
  std::vector<Free> free;
  for (const auto& device : devices) free.push_back({device.total_bytes, device.jobs});
  for (const auto& run : running)
    for (const size_t device : run.devices) {
      free[device].bytes -= run.bytes;
      --free[device].jobs;
    }
  return free;
}

/// Returns `count` devices on which so many bytes are free, those with the fewest; empty: there are
/// fewer.
std::vector<size_t> tightest(const std::vector<Free>& free, int64_t bytes, size_t count) {
  std::vector<size_t> fitting;
  for (size_t d = 0; d < free.size(); ++d)
    if (free[d].jobs >= 1 && free[d].bytes >= bytes) fitting.push_back(d);
  if (fitting.size() < count) return {};
  std::ranges::stable_sort(fitting, {}, [&](size_t d) { return free[d].bytes; });
  fitting.resize(count);
  std::ranges::sort(fitting);
  return fitting;
}

}  // namespace

int64_t most_on_each(const std::vector<launch::DeviceSlot>& devices, size_t count) {
  std::vector<int64_t> bytes;
  for (const auto& device : devices) bytes.push_back(device.total_bytes);
  if (count > bytes.size()) return 0;
  std::ranges::sort(bytes, std::ranges::greater());
  return bytes[count - 1];
}

std::optional<Choice> next_start(const std::vector<launch::DeviceSlot>& devices,
                                 const std::vector<Placed>& running,
                                 const std::vector<Waiting>& queue, size_t count) {
  const auto free = free_of(devices, running);
  const int64_t most = most_on_each(devices, count);
  for (size_t i = 0; i < queue.size(); ++i) {
    const int64_t bytes = std::min(queue[i].bytes, most);
    if (auto chosen = tightest(free, bytes, count); !chosen.empty())
      return Choice{.waiting = i, .devices = std::move(chosen), .bytes = bytes};
    if (queue[i].passed_over >= kPatience) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tare::sweep
