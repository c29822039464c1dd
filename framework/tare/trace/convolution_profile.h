// Predicts what a convolution allocates on the host. oneDNN keeps to itself which layouts and
// scratch buffers it takes (they depend on the instruction set, the sizes and the thread count), so
// each convolution is run there once (measurements.h), on few images; the rest is affine in the
// batch. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tare/trace/allocation_trace.h"

namespace tare::plan {

/// Describes a call of aten::convolution or aten::convolution_backward.
struct Convolution {
  Layout input{}, weight{};
  Layout bias{};         ///< backward: of its sizes alone
  Layout grad_output{};  ///< undefined: forward
  std::vector<int64_t> stride{}, padding{}, dilation{}, output_padding{};
  bool transposed = false;
  int64_t groups = 1;
  std::array<bool, 3> mask{};  ///< backward: which gradients
  bool needs_grad = false;     ///< forward: whether there will be a backward

  [[nodiscard]] bool backward() const { return !grad_output.sizes.empty(); }
  [[nodiscard]] int64_t batch() const { return input.sizes.front(); }
};

/// Returns the work for the call's own batch. A batch of more than max(2, threads) + 1 images is
/// extrapolated from two of that size (17 where LibTorch takes another kernel below 16); others are
/// run as they are. Thread-safe, but what other threads allocate meanwhile on the host is taken for
/// the convolution's unless they are in a phase of their own (memory::ThreadPhase). Throws
/// NotPlannable if the host's allocations for the two differ in more than their sizes, OutOfMemory.
/// One result forward; gradients of input, weight and bias backward.
[[nodiscard]] AllocationTrace profile(const Convolution& call);

}  // namespace tare::plan
