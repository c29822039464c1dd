// Describes the properties and abilities of a device, so that no code asks for its name.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tare::memory {

/// Holds settings of LibTorch's caching allocator that decide what it holds: those of environment
/// variables PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF. A value; the defaults are LibTorch's.
struct CacheSettings {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();  ///< no size is larger

  /// expandable_segments: segments are address space that is mapped piece by piece.
  bool expandable_segments = false;
  int64_t large_segment_bytes = int64_t{20} << 20;  ///< large_segment_size_mb
  int64_t max_split_bytes = kNoLimit;               ///< max_split_size_mb: larger ones stay whole
  /// max_non_split_rounding_mb: a block above max_split_bytes is at most so much too large.
  int64_t max_rounding_bytes = int64_t{20} << 20;
  /// garbage_collection_threshold: a share of the memory fraction; 0: none is collected.
  double collects_garbage_above = 0;
  /// roundup_power2_divisions, for sizes from 1 MiB on, by power of two; empty: none.
  std::vector<int64_t> roundup_divisions{};
  /// The capacity is a memory fraction, as a budget is, and not what the card has.
  bool by_fraction = false;
};

/// Describes the size of a card, by which LibTorch divides work over it. A value.
struct Multiprocessors {
  int64_t count = 0;    ///< 0: not known
  int64_t threads = 0;  ///< at once on each
};

/// Holds the properties of a device by which the memory of a fit is planned (plan/target.h).
struct PlannerTarget {
  /// Whether tensors come from LibTorch's caching allocator, as plan::CudaCache models it; else
  /// each tensor takes exactly its bytes.
  bool caches = false;
  CacheSettings cache{};        ///< of that allocator
  int64_t workspace_bytes = 0;  ///< that cuBLAS takes from the allocator for a product
  /// That cublasLt takes for a product with a bias; 0 if it works in that of cuBLAS.
  int64_t linear_workspace_bytes = 0;
  bool prefers_cublaslt = false;      ///< cublasLt computes products without a bias, too
  bool keeps_workspaces = true;       ///< from the first product on; else each gives its own back
  Multiprocessors multiprocessors{};  ///< for the buffers of long sums
  int64_t capability = 0;             ///< CUDA: the compute capability, 10 x major + minor
  bool computes_bfloat16 = true;      ///< by instructions of its own
};

/// Describes the properties and abilities of a device. A value, constant for the process's life.
struct DeviceTraits {
  std::string type = "cpu";                ///< that names of such devices begin with: "cpu", "cuda"
  bool is_host = true;                     ///< its memory is that of the host
  bool pins = false;                       ///< copies from pinned memory run beside computations
  bool autocasts = true;                   ///< LibTorch has an autocast mode for it
  std::optional<PlannerTarget> planner{};  ///< unset: plans cannot be made for it
};

/// Holds the state of a device's default random generator, if it counts what it has given.
struct GeneratorState {
  uint64_t seed = 0;    ///< of the sequence
  uint64_t offset = 0;  ///< numbers that were taken
};

}  // namespace tare::memory
