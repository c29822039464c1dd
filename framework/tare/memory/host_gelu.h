// GELU with approximate = "tanh", of float32 on the host, by Tare's own kernels. LibTorch's take
// about four times as long (bench_gelu). Before main, a program that uses has_own_gelu(), as init()
// and every Learner do, gives aten::gelu and aten::gelu_backward host kernels, which pass to
// LibTorch all other calls.
#pragma once

namespace tare::memory {

/// Whether GELU by tanh of contiguous tensors of float32 is computed by Tare's kernels: the
/// processor has AVX2 and FMA, LibTorch may use them, and reference_kernels() is
/// off. Values differ from the exact ones by 2e-7 (1 + |x|) at most, and those of the derivative by
/// 1e-6 (1 + |x|).
[[nodiscard]] bool has_own_gelu();

}  // namespace tare::memory
