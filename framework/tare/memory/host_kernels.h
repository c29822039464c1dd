// Kernels of the host that Tare puts in the place of LibTorch's. Internal.
#pragma once

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "tare/base/immortal.h"

namespace tare::memory {

/// Makes a function the host kernel of an operator of aten, such as "mm", for the process. Call it
/// once for an operator. LibTorch's warning that its kernel is replaced is not shown.
template <class Function>
void set_host_kernel(const char* name, Function* kernel) {
  /// Drops LibTorch's warning.
  class WithoutWarnings final : public c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  static Immortal<torch::Library> library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU,
                                          __FILE__, uint32_t{__LINE__});
  WithoutWarnings none;
  const c10::WarningUtils::WarningHandlerGuard quiet(&none);
  library->impl(name, kernel);
}

}  // namespace tare::memory
