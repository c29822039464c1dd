// Follows the caching allocator's blocks from its trace callbacks.
#include "tare/cuda/block_book.h"

#include <algorithm>

namespace tare::cuda {

using c10::cuda::CUDACachingAllocator::TraceEntry;

void BlockBook::note(const TraceEntry& entry) {
  const auto address = static_cast<uintptr_t>(entry.addr_);
  const std::lock_guard lock(mutex_);
  if (entry.action_ == TraceEntry::ALLOC) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): LibTorch reports the address as a number.
    const memory::LiveBlock live{reinterpret_cast<const void*>(address),
                                 static_cast<int64_t>(entry.size_),
                                 ++births_,
                                 services_.current_phase(),
                                 services_.capture_stack(),
                                 services_.current_step()};
    const auto [at, added] = blocks_.insert_or_assign(address, Block{live, entry.device_});
    record(memory::EventKind::allocation, at->second);
  } else if (entry.action_ == TraceEntry::FREE_REQUESTED) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    record(memory::EventKind::free, found->second);
    blocks_.erase(found);
  }
}

void BlockBook::record(memory::EventKind kind, const Block& block) {
  const auto open = rings_.find(block.device);
  if (open != rings_.end()) open->second.note(kind, block.live, services_.current_phase());
}

void BlockBook::mark_workspaces(const std::vector<const void*>& blocks) {
  const std::lock_guard lock(mutex_);
  for (const void* const block : blocks)
    if (const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block)); found != blocks_.end())
      found->second.live.library_workspace = true;
}

uint64_t BlockBook::sequence() const {
  const std::lock_guard lock(mutex_);
  return births_;
}

std::vector<memory::LiveBlock> BlockBook::live_blocks(c10::DeviceIndex device,
                                                      uint64_t born_after) const {
  const std::lock_guard lock(mutex_);
  return list(device, born_after);
}

std::vector<memory::LiveBlock> BlockBook::list(c10::DeviceIndex device, uint64_t born_after) const {
  std::vector<memory::LiveBlock> blocks;
  for (const auto& [address, block] : blocks_)
    if (block.device == device && block.live.sequence > born_after) blocks.push_back(block.live);
  std::ranges::sort(blocks, {}, &memory::LiveBlock::sequence);
  return blocks;
}

void BlockBook::open_ring(c10::DeviceIndex device, memory::EventRing& ring) {
  const std::lock_guard lock(mutex_);
  rings_[device].open(ring);
}

void BlockBook::close_ring(c10::DeviceIndex device, memory::EventRing& ring) {
  const std::lock_guard lock(mutex_);
  auto& open = rings_[device];
  open.close(ring);
  if (!open.any()) rings_.erase(device);
}

memory::EventHistory BlockBook::history(c10::DeviceIndex device,
                                        const memory::EventRing& ring) const {
  memory::EventHistory history;
  history.events.reserve(ring.capacity());
  const std::lock_guard lock(mutex_);
  ring.copy_to(history);
  history.alive = list(device, 0);
  return history;
}

double note_cost_ns(const runtime::HostServices& services) {
  constexpr size_t kBlocks = 10'000;
  BlockBook book(services);
  const int64_t start = memory::now_ns();
  for (size_t i = 1; i <= kBlocks; ++i)
    for (const auto action : {TraceEntry::ALLOC, TraceEntry::FREE_REQUESTED})
      book.note(TraceEntry(action, 0, 512 * i, 512, nullptr, {}, 0));
  return static_cast<double>(memory::now_ns() - start) / kBlocks;
}

}  // namespace tare::cuda
