// A user's program without line tables on libraries that have them: prints the call site of a
// tensor that a library allocated for it.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tare/data/dataset.h"
#include "tare/memory/call_site.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/host_allocator.h"
#include "tare/runtime/init.h"

namespace user {

[[gnu::noinline]] tare::Batch first_batch(const tare::DatasetPtr& data) {
  const std::vector<int64_t> indices{0, 1, 2};
  return data->get({.indices = indices});
}

}  // namespace user

int main() {
  tare::init();
  const auto data = tare::tensor_dataset(at::ones({4, 8}));
  const tare::memory::CallSites gather;
  const tare::Batch batch = user::first_batch(data);
  for (const auto& block : tare::memory::host_allocator::live_blocks())
    if (block.data == batch.input().data_ptr())
      std::puts(tare::memory::site_of(block.stack).str().c_str());
  return 0;
}
