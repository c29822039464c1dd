// The live blocks of CUDA's caching allocator, in order of allocation, each with its phase.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tare/memory/event_ring.h"
#include "tare/runtime/plugin.h"

namespace tare::cuda {

/// Follows the allocator's events of all devices. note() runs under the allocator's lock, so it
/// calls nothing of LibTorch. Blocks from before the first event are unknown. Thread-safe.
class BlockBook {
 public:
  /// Keeps a reference to `services`, which must outlive the book.
  explicit BlockBook(const runtime::HostServices& services) : services_(services) {}

  /// Takes an event of the allocator: an allocation, a free, or one that changes no block.
  void note(const c10::cuda::CUDACachingAllocator::TraceEntry& entry);
  /// Marks the live blocks that begin at these addresses as kept by libraries of the device.
  void mark_workspaces(const std::vector<const void*>& blocks);
  /// Returns the number of the newest block, over all devices.
  [[nodiscard]] uint64_t sequence() const;
  /// Returns the blocks that are alive on a device and numbered above `born_after`, oldest first.
  [[nodiscard]] std::vector<memory::LiveBlock> live_blocks(c10::DeviceIndex device,
                                                           uint64_t born_after) const;
  /// Adds the device's events to the ring from now on, until close_ring(); the ring must outlive
  /// that.
  void open_ring(c10::DeviceIndex device, memory::EventRing& ring);
  /// Ends what open_ring() began.
  void close_ring(c10::DeviceIndex device, memory::EventRing& ring);
  /// Returns the ring's events and the live blocks after them, taken at the same moment.
  [[nodiscard]] memory::EventHistory history(c10::DeviceIndex device,
                                             const memory::EventRing& ring) const;

 private:
  struct Block {
    memory::LiveBlock live;
    c10::DeviceIndex device;
  };

  /// Lists the live blocks; the lock must be held.
  [[nodiscard]] std::vector<memory::LiveBlock> list(c10::DeviceIndex device,
                                                    uint64_t born_after) const;
  void record(memory::EventKind kind, const Block& block);

  const runtime::HostServices& services_;
  mutable std::mutex mutex_;
  // Addresses are unique over all devices (unified addressing).
  std::unordered_map<uintptr_t, Block> blocks_;
  uint64_t births_ = 0;
  std::map<c10::DeviceIndex, memory::OpenRings> rings_;
};

/// Measures the nanoseconds that noting a block's allocation and free takes now, in a book of its
/// own.
[[nodiscard]] double note_cost_ns(const runtime::HostServices& services);

}  // namespace tare::cuda
