// Plays allocations through a model of CUDA's caching allocator.
#include "tare/trace/cuda_cache.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace tare::plan {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr int64_t kMinBlock = 512;    // all sizes are multiples of it
constexpr int64_t kSmallSize = kMiB;  // largest of the small pool
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kMinOwnSegment = 10 * kMiB;  // from here on a segment is not shared
constexpr int64_t kSegmentStep = 2 * kMiB;     // own segments are multiples of it

int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }
int64_t round_down(int64_t bytes, int64_t step) { return bytes / step * step; }

/// The exponent of the largest power of two that is not above `value`.
int exponent_of(int64_t value) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - 1;
}

/// The next of so many equal steps between two powers of two.
int64_t next_division(int64_t bytes, int64_t divisions) {
  const int64_t floor = int64_t{1} << exponent_of(bytes);
  if (floor == bytes) return bytes;
  const int64_t step = floor >> exponent_of(divisions);
  return step == 0 ? 2 * floor : round_up(bytes, step);
}

}  // namespace

struct CudaCache::Block {
  int64_t address = 0, size = 0;
  int stream = 0;
  bool small = false;
  bool live = false;
  bool mapped = true;
  int64_t segment = -1;     // expandable: where its address space begins
  int64_t since = 0;        // lookups of the pool when it became free
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;

  [[nodiscard]] bool expandable() const { return segment >= 0; }
  [[nodiscard]] bool whole() const { return !before && !after; }
};

bool CudaCache::ByFit::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
}

bool CudaCache::ByAddress::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->address) < std::tie(b->stream, b->address);
}

CudaCache::CudaCache(int64_t capacity_bytes, memory::CacheSettings settings)
    : capacity_(capacity_bytes), settings_(std::move(settings)) {}
CudaCache::~CudaCache() = default;

CudaCache::Pool& CudaCache::pool_of(const Block& block) { return block.small ? small_ : large_; }

int64_t CudaCache::rounded(int64_t bytes) const {
  if (bytes < kMinBlock) return kMinBlock;
  int64_t divisions = 0;
  if (!settings_.roundup_divisions.empty()) {
    const int last = static_cast<int>(settings_.roundup_divisions.size()) - 1;
    const int interval = std::clamp(exponent_of(bytes) - exponent_of(kMiB), 0, last);
    divisions = settings_.roundup_divisions[static_cast<size_t>(interval)];
  }
  if (divisions > 1 && bytes > kMinBlock * divisions) return next_division(bytes, divisions);
  return round_up(bytes, kMinBlock);
}

int64_t CudaCache::segment_for(int64_t size) const {
  if (size <= kSmallSize) return kSmallSegment;
  return size < kMinOwnSegment ? settings_.large_segment_bytes : round_up(size, kSegmentStep);
}

bool CudaCache::allocate(int64_t block, int64_t bytes, int stream) {
  const int64_t size = rounded(bytes);
  Pool& pool = size <= kSmallSize ? small_ : large_;
  Block* found = find_free(pool, size, stream);
  if (!found && settings_.by_fraction && settings_.collects_garbage_above > 0) collect_garbage();
  if (!found) found = new_segment(pool, size, stream);
  if (!found && return_oversized(pool, size, stream)) found = new_segment(pool, size, stream);
  if (!found) {
    return_segments();
    ++retries_;
    found = new_segment(pool, size, stream);
  }
  if (!found) return false;
  split(*found, size);
  found->live = true;
  live_[block] = found;
  allocated_ += found->size;
  return true;
}

CudaCache::Block* CudaCache::find_free(Pool& pool, int64_t size, int stream) {
  ++pool.lookups;
  Block wanted{.size = size, .stream = stream};
  auto at = pool.free.lower_bound(&wanted);
  const auto is_there = [&](auto it) { return it != pool.free.end() && (*it)->stream == stream; };
  if (!is_there(at)) return nullptr;
  // A block that can grow counts as large as it can become.
  const auto full_size = [](const Block* block) {
    return block->size + (block->after && !block->after->mapped ? block->after->size : 0);
  };
  for (auto next = std::next(at);
       (*at)->expandable() && is_there(next) && full_size(*next) < full_size(*at); ++next)
    at = next;
  const int64_t limit = settings_.max_split_bytes;
  if (size < limit && (*at)->size >= limit) return nullptr;
  if (size >= limit && (*at)->size >= size + settings_.max_rounding_bytes) return nullptr;
  Block* const block = *at;
  pool.free.erase(at);
  return block;
}

CudaCache::Block* CudaCache::add_block(const Block& block) {
  return (blocks_[block.address] = std::make_unique<Block>(block)).get();
}

CudaCache::Block* CudaCache::new_segment(Pool& pool, int64_t size, int stream) {
  const int64_t bytes = segment_for(size);
  if (settings_.expandable_segments) {
    if (settings_.by_fraction && bytes > capacity_ - reserved_) return nullptr;
    return expand(pool, size, stream);
  }
  if (bytes > capacity_ - reserved_) return nullptr;
  Block* const segment =
      add_block({.address = next_address_, .size = bytes, .stream = stream, .small = pool.small});
  next_address_ += bytes;
  reserved_ += bytes;
  return segment;
}

void CudaCache::split(Block& block, int64_t size) {
  const int64_t rest = block.size - size;
  const bool splits = block.small || settings_.expandable_segments
                          ? rest >= kMinBlock
                          : size < settings_.max_split_bytes && rest > kSmallSize;
  if (splits) put_back(*cut(block, size));
}

// Makes what is behind the first `size` bytes a block of its own, which is in no list.
CudaCache::Block* CudaCache::cut(Block& block, int64_t size) {
  Block rest = block;
  rest.address += size;
  rest.size -= size;
  rest.before = &block;
  Block* const added = add_block(rest);
  if (added->after) added->after->before = added;
  block.after = added;
  block.size = size;
  return added;
}

void CudaCache::put_back(Block& block) {
  Pool& pool = pool_of(block);
  block.since = pool.lookups;
  pool.free.insert(&block);
}

void CudaCache::release(int64_t number) {
  const auto at = live_.find(number);
  if (at == live_.end()) return;
  Block& block = *at->second;
  live_.erase(at);
  allocated_ -= block.size;
  block.live = false;
  merge(block, block.after);
  Block* const before = block.before;
  if (before && !before->live && before->mapped) {
    pool_of(*before).free.erase(before);
    merge(*before, &block);
    return put_back(*before);
  }
  put_back(block);
}

// Takes the neighbour behind a block into it; one that is live, or mapped where the block is not,
// stays.
void CudaCache::merge(Block& block, Block* neighbour) {
  if (!neighbour || neighbour->live || neighbour->mapped != block.mapped) return;
  Pool& pool = pool_of(block);
  if (neighbour->mapped) {
    pool.free.erase(neighbour);
  } else {
    pool.unmapped.erase(neighbour);
  }
  block.size += neighbour->size;
  block.after = neighbour->after;
  if (block.after) block.after->before = &block;
  blocks_.erase(neighbour->address);
}

int64_t CudaCache::granule_of(const Pool& pool) const {
  return pool.small ? kSmallSegment : settings_.large_segment_bytes;
}

// Blocks next to each other, free or without memory, that reach for `size`; else new address space.
CudaCache::Block* CudaCache::find_address_space(Pool& pool, int64_t size, int stream) {
  const auto is_free = [](const Block* block) { return block && !block->live; };
  Block first{.address = -1, .stream = stream};
  for (auto at = pool.unmapped.lower_bound(&first);
       at != pool.unmapped.end() && (*at)->stream == stream; ++at) {
    Block* const begin = is_free((*at)->before) ? (*at)->before : *at;
    int64_t bytes = 0;
    for (const Block* b = begin; bytes < size && is_free(b); b = b->after) bytes += b->size;
    if (bytes >= size) return begin;
  }
  // More than any card has, so that a pool hardly needs a second one.
  constexpr int64_t kAddressSpace = int64_t{1} << 48;
  Block* const segment = add_block({.address = next_address_,
                                    .size = round_down(kAddressSpace, granule_of(pool)),
                                    .stream = stream,
                                    .small = pool.small,
                                    .mapped = false,
                                    .segment = next_address_});
  next_address_ += kAddressSpace;
  pool.unmapped.insert(segment);
  return segment;
}

CudaCache::Block* CudaCache::expand(Pool& pool, int64_t size, int stream) {
  Block* block = find_address_space(pool, size, stream);
  if (!block->mapped && !map(*block, std::min(block->size, size))) return nullptr;
  while (block->size < size) {
    Block* const next = block->after;
    if (!map(*next, std::min(size - block->size, next->size))) return nullptr;
  }
  pool.free.erase(block);
  return block;
}

// Gives memory to the begin of a block that has none, and joins it with its free neighbours. The
// block before it, if that is free, takes it in.
bool CudaCache::map(Block& block, int64_t size) {
  Pool& pool = pool_of(block);
  const int64_t bytes = std::min(round_up(size, granule_of(pool)), block.size);
  if (!settings_.by_fraction && bytes > capacity_ - reserved_) return false;
  pool.unmapped.erase(&block);
  if (bytes < block.size) pool.unmapped.insert(cut(block, bytes));
  block.mapped = true;
  reserved_ += bytes;
  merge(block, block.after);
  Block* const before = block.before;
  if (before && !before->live && before->mapped) {
    pool.free.erase(before);
    merge(*before, &block);
    put_back(*before);
  } else {
    put_back(block);
  }
  return true;
}

// Takes the memory of whole granules from a free block.
void CudaCache::unmap(Block& block) {
  Pool& pool = pool_of(block);
  const int64_t granule = granule_of(pool);
  const int64_t offset = block.address - block.segment;
  const int64_t begin = round_up(offset, granule), end = round_down(offset + block.size, granule);
  if (end <= begin) return;
  pool.free.erase(&block);
  Block* middle = &block;
  if (begin > offset) {
    middle = cut(block, begin - offset);
    put_back(block);
  }
  if (middle->size > end - begin) put_back(*cut(*middle, end - begin));
  reserved_ -= end - begin;
  middle->mapped = false;
  merge(*middle, middle->after);
  if (Block* const before = middle->before; before && !before->mapped) {
    pool.unmapped.erase(before);
    merge(*before, middle);
    middle = before;
  }
  if (middle->whole()) {
    blocks_.erase(middle->address);
  } else {
    pool.unmapped.insert(middle);
  }
}

void CudaCache::return_segment(Block& block) {
  pool_of(block).free.erase(&block);
  reserved_ -= block.size;
  blocks_.erase(block.address);
}

void CudaCache::return_segments() {
  for (Pool* pool : {&large_, &small_}) {
    std::vector<Block*> free(pool->free.begin(), pool->free.end());
    std::erase_if(free, [&](const Block* block) { return kept_.contains(block->stream); });
    for (Block* const block : free) {
      if (!block->expandable() && block->whole()) return_segment(*block);
    }
    for (Block* const block : free) {
      if (settings_.expandable_segments) unmap(*block);
    }
  }
}

// Returns as few of the blocks that may not be split as give enough: the smallest that is enough,
// or the largest ones until they are enough together.
bool CudaCache::return_oversized(Pool& pool, int64_t size, int stream) {
  const int64_t limit = settings_.max_split_bytes;
  if (limit == memory::CacheSettings::kNoLimit) return false;
  const int64_t wanted = std::max(size, limit);
  Block key{.size = wanted, .stream = stream};
  auto at = pool.free.lower_bound(&key);
  if (at != pool.free.end() && (*at)->stream == stream) {
    return_segment(**at);
    return true;
  }
  int64_t returned = 0;
  while (returned < wanted && at != pool.free.begin()) {
    Block& block = **std::prev(at);
    if (block.size < limit || block.stream != stream) break;
    returned += block.size;
    return_segment(block);
  }
  return returned >= wanted;
}

// Returns the segments of the large pool that have been free for longer than the mean, until the
// reserved bytes are below the threshold.
void CudaCache::collect_garbage() {
  const auto threshold =
      static_cast<int64_t>(settings_.collects_garbage_above * static_cast<double>(capacity_));
  if (reserved_ <= threshold) return;
  const int64_t target = reserved_ - threshold;
  const auto age = [&](const Block* block) { return large_.lookups - block->since; };
  std::vector<Block*> free;
  int64_t total = 0, returned = 0;
  for (Block* const block : large_.free) {
    if (!block->whole() || kept_.contains(block->stream)) continue;
    free.push_back(block);
    total += age(block);
  }
  for (bool found = true; found && returned < target && !free.empty();) {
    const double mean = static_cast<double>(total) / static_cast<double>(free.size());
    const size_t before = free.size();
    std::erase_if(free, [&](Block* block) {
      if (block->expandable() || static_cast<double>(age(block)) < mean) return false;
      returned += block->size;
      total -= age(block);
      return_segment(*block);
      return true;
    });
    found = free.size() < before;
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
