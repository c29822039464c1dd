// Plays allocations through a model of CUDA's caching allocator.
#include "tare/trace/cuda_cache.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tare::plan {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr int64_t kMinBlock = 512;    // all sizes are multiples of it
constexpr int64_t kSmallSize = kMiB;  // largest of the small pool
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kMinOwnSegment = 10 * kMiB;  // from here on a segment is not shared
constexpr int64_t kLargeSegment = 20 * kMiB;
constexpr int64_t kSegmentStep = 2 * kMiB;  // own segments are multiples of it

int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

int64_t segment_for(int64_t size) {
  if (size <= kSmallSize) return kSmallSegment;
  return size < kMinOwnSegment ? kLargeSegment : round_up(size, kSegmentStep);
}

}  // namespace

struct CudaCache::Block {
  int64_t address = 0, size = 0;
  int stream = 0;
  bool small = false;
  bool live = false;
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;
};

bool CudaCache::ByFit::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
}

CudaCache::CudaCache(int64_t capacity_bytes) : capacity_(capacity_bytes) {}
CudaCache::~CudaCache() = default;

CudaCache::Free& CudaCache::free_of(const Block& block) { return block.small ? small_ : large_; }

bool CudaCache::allocate(int64_t block, int64_t bytes, int stream) {
  const int64_t size = round_up(bytes, kMinBlock);
  Block* found = find_free(size, stream);
  if (!found) found = new_segment(size, stream);
  if (!found) return false;
  split(*found, size);
  found->live = true;
  live_[block] = found;
  allocated_ += found->size;
  return true;
}

CudaCache::Block* CudaCache::find_free(int64_t size, int stream) {
  Block wanted{.size = size, .stream = stream};
  Free& pool = size <= kSmallSize ? small_ : large_;
  const auto at = pool.lower_bound(&wanted);
  if (at == pool.end() || (*at)->stream != stream) return nullptr;
  Block* const block = *at;
  pool.erase(at);
  return block;
}

CudaCache::Block* CudaCache::new_segment(int64_t size, int stream) {
  const int64_t bytes = segment_for(size);
  if (bytes > capacity_ - reserved_) {
    return_segments();
    ++retries_;
    if (bytes > capacity_ - reserved_) return nullptr;
  }
  auto block = std::make_unique<Block>();
  block->address = next_address_;
  block->size = bytes;
  block->stream = stream;
  block->small = size <= kSmallSize;
  next_address_ += bytes;
  reserved_ += bytes;
  Block* const segment = block.get();
  blocks_[segment->address] = std::move(block);
  return segment;
}

void CudaCache::split(Block& block, int64_t size) {
  const int64_t rest = block.size - size;
  if (block.small ? rest < kMinBlock : rest <= kSmallSize) return;
  auto tail = std::make_unique<Block>(block);
  tail->address += size;
  tail->size = rest;
  tail->before = &block;
  if (tail->after) tail->after->before = tail.get();
  block.after = tail.get();
  block.size = size;
  free_of(*tail).insert(tail.get());
  blocks_[tail->address] = std::move(tail);
}

void CudaCache::release(int64_t number) {
  const auto at = live_.find(number);
  if (at == live_.end()) return;
  Block* block = at->second;
  live_.erase(at);
  allocated_ -= block->size;
  block->live = false;
  if (block->after && !block->after->live) {
    free_of(*block).erase(block->after);
    merge_with_next(*block);
  }
  if (block->before && !block->before->live) {
    block = block->before;
    free_of(*block).erase(block);
    merge_with_next(*block);
  }
  free_of(*block).insert(block);
}

void CudaCache::merge_with_next(Block& block) {
  const Block* const next = block.after;
  block.size += next->size;
  block.after = next->after;
  if (block.after) block.after->before = &block;
  blocks_.erase(next->address);
}

void CudaCache::return_segments() {
  for (Free* pool : {&large_, &small_}) {
    std::erase_if(*pool, [this](Block* block) {
      if (block->before || block->after) return false;
      reserved_ -= block->size;
      blocks_.erase(block->address);
      return true;
    });
  }
}

CudaPeak cuda_peak(const Trace& trace, int64_t capacity_bytes) {
  CudaPeak result;
  CudaCache cache(capacity_bytes);
  for (const Event& event : trace.events) {
    if (event.bytes == 0) {
      cache.release(event.block);
    } else if (!cache.allocate(event.block, event.bytes)) {
      result.fits = false;
      break;
    }
    auto at = std::ranges::find(result.phases, event.phase, &CudaPhase::phase);
    if (at == result.phases.end())
      at = result.phases.insert(result.phases.end(), {.phase = event.phase});
    for (CudaPhase* peak : {&result.whole, &*at}) {
      peak->allocated_bytes = std::max(peak->allocated_bytes, cache.allocated_bytes());
      peak->reserved_bytes = std::max(peak->reserved_bytes, cache.reserved_bytes());
    }
  }
  result.retries = cache.retries();
  return result;
}

}  // namespace tare::plan
