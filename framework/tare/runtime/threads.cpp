// Sets LibTorch's threads, and how they wait.
#include "tare/runtime/threads.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdlib>

namespace tare {

void bound_spinning(char** argv) {
  if (bound_spinning_of_children()) execv("/proc/self/exe", argv);
}

bool bound_spinning_of_children() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  return setenv("GOMP_SPINCOUNT", kSpinCount, 0) == 0;
}

void runtime::set_operator_threads(int threads) {
  if (threads == 0 && std::getenv("OMP_NUM_THREADS")) return;  // LibTorch has read it
  at::set_num_threads(threads > 0 ? threads : usable_processors());
}

}  // namespace tare
