// A model of LibTorch's caching allocator for CUDA: what it hands out (allocated) and what it holds
// (reserved) when a trace is played back. No GPU is needed.
//
// The rules are those of LibTorch 2.11 (c10/cuda/CUDACachingAllocator), here with its default
// settings:
//   - Sizes are rounded up to 512 bytes.
//   - A block of up to 1 MiB comes from a segment of 2 MiB, one below 10 MiB from a segment of
//     20 MiB; a larger block has a segment of its own, rounded up to 2 MiB.
//   - The best fit among the free blocks of the stream and pool is taken; the lower address wins.
//   - The rest of a block is split off if it is >= 512 bytes (small pool) or > 1 MiB (large pool).
//   - A freed block merges with its free neighbours in the segment.
//   - When the card is full, segments without a live block are returned, and the request is
//     repeated.
// The settings that people make in PYTORCH_CUDA_ALLOC_CONF are modelled too, see
// memory::CacheSettings. The pool of a CUDA graph is a stream of its own here. Not modelled: blocks
// in use on a second stream, and the memory of libraries beside the allocator (the context, and
// what no tensor holds).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "tare/memory/device_traits.h"
#include "tare/trace/trace.h"

namespace tare::plan {

/// Models the allocator of one card. Not thread-safe.
class CudaCache {
 public:
  /// The capacity of a card that never refuses.
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  /// Makes an empty cache that can reserve `capacity_bytes` in all.
  explicit CudaCache(int64_t capacity_bytes = kUnlimited, memory::CacheSettings settings = {});
  ~CudaCache();
  CudaCache(const CudaCache&) = delete;
  CudaCache& operator=(const CudaCache&) = delete;

  /// Allocates `bytes` > 0 as `block`, a number chosen by the caller that is not alive. Returns
  /// false and allocates nothing if they do not fit even after cached segments were returned.
  [[nodiscard]] bool allocate(int64_t block, int64_t bytes, int stream = 0);
  /// Frees a block; a number that is not alive is ignored.
  void release(int64_t block);

  /// Returns the segments without a live block to the card, but for those of streams that keep()
  /// names.
  void return_segments();
  /// Says that the segments of `stream` stay, as those of a graph's pool do while the graph is
  /// there.
  void keep(int stream) { kept_.insert(stream); }

  /// Returns the bytes of live blocks, as rounded up by the allocator.
  [[nodiscard]] int64_t allocated_bytes() const { return allocated_; }
  /// Returns the bytes of all segments, live or cached.
  [[nodiscard]] int64_t reserved_bytes() const { return reserved_; }
  /// Returns how often segments had to be returned to free memory.
  [[nodiscard]] int64_t retries() const { return retries_; }

 private:
  struct Block;
  struct ByFit {  // stream, then size, then address
    bool operator()(const Block* a, const Block* b) const;
  };
  struct ByAddress {  // stream, then address
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    bool small = false;
    std::set<Block*, ByFit> free{};
    std::set<Block*, ByAddress> unmapped{};  // address space without memory
    int64_t lookups = 0;                     // the age of free blocks is counted in them
  };

  [[nodiscard]] int64_t rounded(int64_t bytes) const;
  [[nodiscard]] int64_t segment_for(int64_t size) const;
  [[nodiscard]] Pool& pool_of(const Block& block);
  [[nodiscard]] Block* find_free(Pool& pool, int64_t size, int stream);
  [[nodiscard]] Block* new_segment(Pool& pool, int64_t size, int stream);
  [[nodiscard]] Block* add_block(const Block& block);
  void split(Block& block, int64_t size);
  [[nodiscard]] Block* cut(Block& block, int64_t size);
  void put_back(Block& block);
  void merge(Block& block, Block* neighbour);

  // ---- Expandable segments: address space that is mapped piece by piece.
  [[nodiscard]] Block* find_address_space(Pool& pool, int64_t size, int stream);
  [[nodiscard]] Block* expand(Pool& pool, int64_t size, int stream);
  [[nodiscard]] bool map(Block& block, int64_t size);
  void unmap(Block& block);
  [[nodiscard]] int64_t granule_of(const Pool& pool) const;

  void return_segment(Block& block);
  [[nodiscard]] bool return_oversized(Pool& pool, int64_t size, int stream);
  void collect_garbage();

  std::set<int> kept_;  // streams
  int64_t capacity_;
  memory::CacheSettings settings_;
  int64_t allocated_ = 0, reserved_ = 0, retries_ = 0;
  int64_t next_address_ = 0;  // segments are never adjacent for the allocator
  Pool small_{.small = true}, large_{};
  std::map<int64_t, std::unique_ptr<Block>> blocks_;  // by address
  std::unordered_map<int64_t, Block*> live_;          // by the caller's number
};

/// Peaks of one phase, or of the whole trace.
struct CudaPhase {
  uint32_t phase = 0;           ///< id of the phase, see memory/phase.h
  int64_t allocated_bytes = 0;  ///< highest bytes of live blocks in it
  int64_t reserved_bytes = 0;   ///< highest bytes of all segments in it
};

/// Holds the peaks of a trace on a card. A value.
struct CudaPeak {
  CudaPhase whole{};                ///< of the whole trace
  std::vector<CudaPhase> phases{};  ///< in order of their first event
  bool fits = true;                 ///< false: the peaks are those until the refused request
  int64_t retries = 0;              ///< see CudaCache::retries()
};

/// Plays a trace back on one stream. The trace is that of the host: an operator whose CUDA kernel
/// takes other temporary memory (convolutions above all) is counted as the host's.
[[nodiscard]] CudaPeak cuda_peak(const Trace& trace,
                                 int64_t capacity_bytes = CudaCache::kUnlimited);

}  // namespace tare::plan
