// Counts the processors that this process may use, and sets LibTorch's threads.
#include "tare/runtime/threads.h"

#include <ATen/Parallel.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "tare/memory/cgroup.h"

namespace tare {

void bound_spinning(char** argv) {
  if (bound_spinning_of_children()) execv("/proc/self/exe", argv);
}

bool bound_spinning_of_children() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  return setenv("GOMP_SPINCOUNT", kSpinCount, 0) == 0;
}

namespace runtime {
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

void set_operator_threads(int threads) {
  if (threads == 0 && std::getenv("OMP_NUM_THREADS")) return;  // LibTorch has read it
  at::set_num_threads(threads > 0 ? threads : usable_processors());
}

}  // namespace runtime
}  // namespace tare
