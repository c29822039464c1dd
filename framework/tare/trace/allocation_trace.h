// Records what a piece of work allocates on the host, extrapolates it to other sizes, and plays it
// back in a trace. Internal.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tare::plan {

/// Sizes, strides and dtype; no sizes: an undefined tensor.
struct Layout {
  std::vector<int64_t> sizes{}, strides{};
  at::ScalarType type = at::kFloat;

  [[nodiscard]] static Layout of(const at::Tensor& tensor);
  bool operator==(const Layout&) const = default;
};

/// Appends numbers for keys and files: a list behind its length, or sizes, strides and dtype.
void append(std::vector<int64_t>& numbers, const std::vector<int64_t>& list);
void append(std::vector<int64_t>& numbers, const Layout& layout);

/// Records that a block is born, or freed.
struct HostStep {
  size_t block = 0;     ///< in order of birth, from 0
  int64_t bytes = 0;    ///< 0: freed
  int64_t result = -1;  ///< birth: index of the result that this block is the storage of, or -1
};

struct AllocationTrace {
  std::vector<HostStep> steps{};
  std::vector<Layout> results{};
};

/// Opens a scope in which operators of this thread compute real values, also inside a MetaScope,
/// and record no graph.
class OnTheHost {
  c10::impl::ExcludeDispatchKeyGuard real_{c10::DispatchKey::Fake};
  at::AutoDispatchBelowADInplaceOrView no_graph_;
};

/// Does the work OnTheHost and records what this thread and its worker threads allocate. What other
/// threads allocate meanwhile is taken for the work's, unless they are in a phase of their own
/// (memory::ThreadPhase). `result`s are the tensors that the work returns. Throws what the work
/// throws; StateError unless Tare's host allocator is in force or if there are more than `capacity`
/// events.
[[nodiscard]] AllocationTrace record(const std::function<std::vector<at::Tensor>()>& work,
                                     size_t capacity = size_t{1} << 16);

/// Returns how many bytes the work has at most beside its results, >= 0.
[[nodiscard]] int64_t peak_above_results(const AllocationTrace& work);

/// Whether two recordings differ at most in the sizes of their steps.
[[nodiscard]] bool same_steps(const AllocationTrace& a, const AllocationTrace& b);

/// Extrapolates the work to size `n`, where it is affine in the size: from two recordings with the
/// same steps, at the sizes `a` and `b`.
[[nodiscard]] AllocationTrace extrapolate(const AllocationTrace& at_a, int64_t a,
                                          const AllocationTrace& at_b, int64_t b, int64_t n);

/// Allocates and frees on a device what the recording did. Returns the results; blocks that are
/// alive after the work and hold no result are appended to `held`.
[[nodiscard]] std::vector<at::Tensor> play(const AllocationTrace& work,
                                           std::vector<c10::DataPtr>& held,
                                           c10::DeviceType device = c10::kMeta);

}  // namespace tare::plan
