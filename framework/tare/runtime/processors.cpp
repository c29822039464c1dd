// Counts the processors that this process may use. Needs no LibTorch.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tare/memory/cgroup.h"
#include "tare/runtime/threads.h"

namespace tare::runtime {
namespace {

int affinity_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more processors than the set holds.
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_processors(const std::filesystem::path& root) {
  const int allowed = std::max(1, affinity_processors());
  const auto quota = memory::cgroup_processors(root);
  if (!quota) return allowed;
  return std::clamp(static_cast<int>(std::ceil(*quota)), 1, allowed);
}

}  // namespace tare::runtime
