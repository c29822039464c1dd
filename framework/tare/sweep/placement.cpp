// Chooses the run that starts next, and its device.
#include "tare/sweep/placement.h"

#include <algorithm>

namespace tare::sweep {
namespace {

struct Free {
  int64_t bytes = 0, jobs = 0;
};

std::vector<Free> free_of(const std::vector<launch::DeviceSlot>& devices,
                          const std::vector<Placed>& running) {
  std::vector<Free> free;
  for (const auto& device : devices) free.push_back({device.total_bytes, device.jobs});
  for (const auto& run : running) {
    free[run.device].bytes -= run.bytes;
    --free[run.device].jobs;
  }
  return free;
}

int64_t largest(const std::vector<launch::DeviceSlot>& devices) {
  int64_t bytes = 0;
  for (const auto& device : devices) bytes = std::max(bytes, device.total_bytes);
  return bytes;
}

}  // namespace

std::optional<Choice> next_start(const std::vector<launch::DeviceSlot>& devices,
                                 const std::vector<Placed>& running,
                                 const std::vector<Waiting>& queue) {
  const auto free = free_of(devices, running);
  const int64_t most = largest(devices);
  for (size_t i = 0; i < queue.size(); ++i) {
    const int64_t bytes = std::min(queue[i].bytes, most);
    std::optional<Choice> best;
    for (size_t d = 0; d < devices.size(); ++d) {
      if (free[d].jobs < 1 || free[d].bytes < bytes) continue;
      if (!best || free[d].bytes < free[best->device].bytes) best = {i, d, bytes};
    }
    if (best) return best;
    if (queue[i].passed_over >= kPatience) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tare::sweep
