// Sets LibTorch's switches for kernels, and sets them back.
#include "tare/model/kernels.h"

#include <ATen/Context.h>

#include <functional>
#include <utility>

#include "tare/memory/reference_kernels.h"

namespace tare {
namespace {

at::Context& context() { return at::globalContext(); }

/// Sets a switch and returns what puts it back.
template <class Get, class Set>
std::function<void()> change(Get get, Set set, bool to) {
  const bool before = std::invoke(get, context());
  std::invoke(set, context(), to);
  return [set, before] { std::invoke(set, context(), before); };
}

}  // namespace

KernelScope::KernelScope(const KernelOptions& options) {
  using at::Context;
  if (options.tf32) {
    undo_.push_back(change([](Context& c) { return c.allowTF32CuBLAS(); },
                           &Context::setAllowTF32CuBLAS, *options.tf32));
    undo_.push_back(change([](Context& c) { return c.allowTF32CuDNN(); },
                           &Context::setAllowTF32CuDNN, *options.tf32));
  }
  if (!options.cudnn)
    undo_.push_back(change(&Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN, false));
  if (options.cudnn_benchmark)
    undo_.push_back(change(&Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN, true));
  if (options.reference) {
    undo_.push_back(
        [before = memory::reference_kernels()] { memory::set_reference_kernels(before); });
    memory::set_reference_kernels(true);
  }
  if (!options.deterministic) return;
  undo_.push_back(change(&Context::deterministicCuDNN, &Context::setDeterministicCuDNN, true));
  const bool warn_only = context().deterministicAlgorithmsWarnOnly();
  undo_.push_back(change(
      &Context::deterministicAlgorithms,
      [warn_only](Context& c, bool on) { c.setDeterministicAlgorithms(on, !on && warn_only); },
      true));
}

KernelScope::~KernelScope() {
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
}

}  // namespace tare
