// Words out-of-memory errors, and frees what a failed backward left.
#include "tare/memory/oom.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include "tare/memory/request_text.h"

namespace tare {
namespace {

std::string oom_message(c10::Device device, int64_t asked, int64_t allocated,
                        std::optional<int64_t> budget, const std::string& advice) {
  // Nothing was asked for here where another process ran out of memory.
  const std::string request =
      asked > 0 || advice.empty() ? memory::request_text(asked, allocated, budget) + "; " : "";
  return "[memory.allocate] out of memory on " + device.str() + ": " + request +
         (advice.empty() ? "raise the budget, or take a smaller batch or model" : advice);
}

}  // namespace

OutOfMemory::OutOfMemory(c10::Device device, int64_t asked_bytes, int64_t allocated_bytes,
                         std::optional<int64_t> budget_bytes, std::string advice)
    : c10::OutOfMemoryError(
          oom_message(device, asked_bytes, allocated_bytes, budget_bytes, advice)),
      device_(device),
      asked_bytes_(asked_bytes),
      allocated_bytes_(allocated_bytes),
      budget_bytes_(budget_bytes),
      advice_(std::move(advice)) {}

void memory::flush_ready_queue() {
  const c10::InferenceMode normal_mode(false);
  const at::AutoGradMode with_graph(true);
  // Views of a tensor without numbers take no memory, so that it works when there is none.
  const auto none = at::empty({0}, c10::kCPU).set_requires_grad(true);
  none.view({0}).backward(at::empty({0}, c10::kCPU));
}

}  // namespace tare
