#include "tare/cuda/block_book.h"

#include <algorithm>

namespace tare::cuda {

using c10::cuda::CUDACachingAllocator::TraceEntry;

void BlockBook::note(const TraceEntry& entry) {
  const auto address = static_cast<uintptr_t>(entry.addr_);
  const std::lock_guard lock(mutex_);
  if (entry.action_ == TraceEntry::ALLOC) {
    const memory::LiveBlock live{reinterpret_cast<const void*>(address),
                                 static_cast<int64_t>(entry.size_), ++births_,
                                 services_.current_phase()};
    blocks_.insert_or_assign(address, Block{live, entry.device_});
  } else if (entry.action_ == TraceEntry::FREE_REQUESTED) {
    blocks_.erase(address);
  }
}

uint64_t BlockBook::sequence() const {
  const std::lock_guard lock(mutex_);
  return births_;
}

std::vector<memory::LiveBlock> BlockBook::live_blocks(c10::DeviceIndex device,
                                                      uint64_t born_after) const {
  std::vector<memory::LiveBlock> blocks;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, block] : blocks_)
      if (block.device == device && block.live.sequence > born_after) blocks.push_back(block.live);
  }
  std::ranges::sort(blocks, {}, &memory::LiveBlock::sequence);
  return blocks;
}

}  // namespace tare::cuda
