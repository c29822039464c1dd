// Collects the versions, processor, memory and device of a run.
#include "tare/recipe/machine.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "tare/memory/backend.h"
#include "tare/memory/machine.h"
#include "tare/recipe/commit.h"

namespace tare {

Machine this_machine(c10::Device device) {
  const std::string commit = kCommit;
  return {.tare = TARE_VERSION + (commit.empty() ? "" : ", commit " + commit),
          .libtorch = TORCH_VERSION,
          .processor = memory::processor_name(),
          .threads = at::get_num_threads(),
          .memory_bytes = memory::machine_memory().total_bytes,
          .device = memory::backend(device).name()};
}

}  // namespace tare
