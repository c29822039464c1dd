// Does one thing before or after tare::init() and says what came of it: the argument names the
// thing. Exit code 0: init() accepted; 10: StateError; 11: ConfigError; 12: DeviceError.
#include "tare/runtime/init.h"
#include "tare/runtime/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <torch/csrc/autograd/engine.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/backend.h"
#include "tare/memory/phase.h"
#include "tare/runtime/device_name.h"

namespace {

tare::InitOptions options;

void backward() { at::ones({1}).set_requires_grad(true).mul(2).sum().backward(); }
void convolution() {
  static_cast<void>(at::conv2d(at::ones({1, 1, 4, 4}), at::ones({1, 1, 3, 3})));
}

class OwnEngine final : public torch::autograd::Engine {};

torch::autograd::Engine& own_engine() {
  static tare::Immortal<OwnEngine> engine;
  return *engine;
}

const std::map<std::string, void (*)()> kBefore = {
    {"nothing", [] {}},
    {"tensor", [] { static_cast<void>(at::ones({1})); }},
    {"seed", [] { at::manual_seed(1); }},
    {"has_cuda", [] { static_cast<void>(at::hasCUDA()); }},
    {"backward", &backward},
    {"conv2d", &convolution},
    {"foreign_allocator", [] { c10::SetCPUAllocator(c10::GetDefaultMobileCPUAllocator()); }},
    {"foreign_engine", [] { torch::autograd::set_default_engine_stub(&own_engine); }},
    {"threads_1", [] { options.threads = 1; }},
    {"negative_threads", [] { options.threads = -1; }},
    {"cuda_on", [] { options.cuda = tare::CudaMode::on; }},
    {"cuda_off", [] { options.cuda = tare::CudaMode::off; }},
    {"twice",
     [] {
       tare::init();
       backward();
       options.threads = -1;  // a second call looks at nothing
     }},
};

/// Bytes that malloc mapped on their own for a block of 64 MiB.
size_t separately_mapped() {
  const size_t before = mallinfo2().hblkhd;
  const auto tensor = at::ones({1 << 24});
  return mallinfo2().hblkhd - before;
}

void pass_through_phases() {
  const tare::memory::Phase forward(tare::memory::PhaseKind::forward);
  { const tare::memory::Phase own("distil"); }
  std::thread([] { const tare::memory::ThreadPhase data(tare::memory::PhaseKind::data); }).join();
}

int try_init() {
  try {
    tare::init(options);
    return 0;
  } catch (const tare::StateError& error) {
    std::puts(error.what());
    return 10;
  } catch (const tare::ConfigError& error) {
    std::puts(error.what());
    return 11;
  } catch (const tare::DeviceError& error) {
    std::puts(error.what());
    return 12;
  }
}

}  // namespace

int main(int, char** argv) {
  const std::string thing = argv[1];
  if (thing == "spin") {
    tare::bound_spinning(argv);
    const char* spin = std::getenv("GOMP_SPINCOUNT");
    std::printf("spin %s\n", spin ? spin : "unset");
    return 0;
  }
  kBefore.at(thing)();
  const int result = try_init();
  if (result == 0) static_cast<void>(tare::runtime::parse_device("auto"));  // warns of absence
  std::printf("devices");
  for (const auto& device : tare::memory::devices()) std::printf(" %s", device.str().c_str());
  std::printf("\ninitialized %d threads %d mapped %zu\n", tare::initialized(),
              at::get_num_threads(), separately_mapped());
  pass_through_phases();
  return result;
}
