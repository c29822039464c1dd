// The switch that turns Tare's kernels of the host off.
#pragma once

namespace tare::memory {

/// Whether operators have the bits of LibTorch's own kernels, as KernelOptions::reference asks for.
[[nodiscard]] bool reference_kernels();
/// Sets what reference_kernels() returns, in the process. Thread-safe.
void set_reference_kernels(bool on);

}  // namespace tare::memory
