// The live blocks of CUDA's caching allocator, in order of allocation, each with its phase.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tare/memory/room.h"

namespace tare::cuda {

/// Follows the allocator's events of all devices. note() runs under the allocator's lock, so it
/// calls nothing of LibTorch. Blocks from before the first event are unknown. Thread-safe.
class BlockBook {
 public:
  explicit BlockBook(const memory::HostServices& services) : services_(services) {}

  void note(const c10::cuda::CUDACachingAllocator::TraceEntry& entry);
  [[nodiscard]] uint64_t sequence() const;
  [[nodiscard]] std::vector<memory::LiveBlock> live_blocks(c10::DeviceIndex device,
                                                           uint64_t born_after) const;

 private:
  struct Block {
    memory::LiveBlock live;
    c10::DeviceIndex device;
  };

  const memory::HostServices& services_;
  mutable std::mutex mutex_;
  // Addresses are unique over all devices (unified addressing).
  std::unordered_map<uintptr_t, Block> blocks_;
  uint64_t births_ = 0;
};

}  // namespace tare::cuda
