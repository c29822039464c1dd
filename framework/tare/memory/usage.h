// How much memory a device has and how much is in use, as values.
//
// Three figures are kept apart and never added to one another:
//   - allocated: bytes of live tensor storages; host: as requested, CUDA: rounded up to 512
//   - reserved: bytes the tensor allocator holds, live or cached; host: equal to allocated
//   - process: bytes the process holds for any purpose; host: resident set, CUDA: NVML's figure
#pragma once

#include <cstdint>

namespace tare::memory {

/// Reports the memory in use on one device, in bytes; a value.
struct Usage {
  int64_t allocated_bytes = 0;  ///< bytes of live tensor storages
  int64_t reserved_bytes = 0;   ///< bytes that the tensor allocator holds, live or cached
  int64_t process_bytes = 0;    ///< 0 where it cannot be read
  int64_t blocks = 0;           ///< live blocks, which `allocated_bytes` sums

  // Of a caching allocator. The host caches nothing: active is equal to allocated, the others 0.
  int64_t active_bytes = 0;      ///< allocated, or freed while another stream still uses it
  int64_t fragmented_bytes = 0;  ///< free, but in segments that hold live blocks: stays reserved
  int64_t retries = 0;           ///< allocations that needed the cache given back first, so far
  /// Page-locked memory of the host that LibTorch holds for copies to and from all cards, used or
  /// cached, with its rounding up to powers of two. reclaim() returns what is cached.
  int64_t pinned_bytes = 0;
};

/// Reports the memory of the whole machine or card, other processes included, in bytes.
struct MemoryInfo {
  int64_t total_bytes = 0;      ///< of the machine or card
  int64_t available_bytes = 0;  ///< still allocatable; host: without swapping, within the cgroup
};

/// Counts the bytes that reclaim() returned to the system.
struct Reclaimed {
  int64_t reserved_bytes = 0;  ///< fewer bytes that the allocator holds
  int64_t process_bytes = 0;   ///< fewer bytes that the process holds
};

}  // namespace tare::memory
