// A model of LibTorch's caching allocator for CUDA: what it hands out (allocated) and what it holds
// (reserved) when a trace is played back. No GPU is needed.
//
// The rules are those of LibTorch 2.11 with its default settings (c10/cuda/CUDACachingAllocator):
//   - sizes are rounded up to 512 bytes
//   - up to 1 MiB comes from segments of 2 MiB; below 10 MiB from segments of 20 MiB; the rest has
//   a
//     segment of its own, rounded up to 2 MiB
//   - best fit among the free blocks of the stream and pool; the lower address wins
//   - the rest of a block is split off if it is >= 512 bytes (small pool) or > 1 MiB (large pool)
//   - a freed block merges with its free neighbours in the segment
//   - when the card is full, segments without a live block are returned, and the request is
//   repeated
// Not modelled: expandable segments, max_split_size, garbage collection, pools of CUDA graphs,
// blocks in use on a second stream, and the memory of libraries beside the allocator (the context,
// cuBLAS and cuDNN workspaces that no tensor holds).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "tare/trace/trace.h"

namespace tare::plan {

/// The allocator of one card. Not thread-safe.
class CudaCache {
 public:
  /// The capacity of a card that never refuses.
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  /// Makes an empty cache that can reserve `capacity_bytes` in all.
  explicit CudaCache(int64_t capacity_bytes = kUnlimited);
  ~CudaCache();
  CudaCache(const CudaCache&) = delete;
  CudaCache& operator=(const CudaCache&) = delete;

  /// Allocates `bytes` > 0 as `block`, a number chosen by the caller that is not alive. Returns
  /// false and allocates nothing if they do not fit even after cached segments were returned.
  [[nodiscard]] bool allocate(int64_t block, int64_t bytes, int stream = 0);
  /// Frees a block; a number that is not alive is ignored.
  void release(int64_t block);

  /// Returns the bytes of live blocks, as rounded up by the allocator.
  [[nodiscard]] int64_t allocated_bytes() const { return allocated_; }
  /// Returns the bytes of all segments, live or cached.
  [[nodiscard]] int64_t reserved_bytes() const { return reserved_; }
  /// Returns how often segments had to be returned to make room.
  [[nodiscard]] int64_t retries() const { return retries_; }

 private:
  struct Block;
  struct ByFit {  // stream, then size, then address
    bool operator()(const Block* a, const Block* b) const;
  };
  using Free = std::set<Block*, ByFit>;

  [[nodiscard]] Free& free_of(const Block& block);
  [[nodiscard]] Block* find_free(int64_t size, int stream);
  [[nodiscard]] Block* new_segment(int64_t size, int stream);
  void split(Block& block, int64_t size);
  void merge_with_next(Block& block);
  void return_segments();

  int64_t capacity_;
  int64_t allocated_ = 0, reserved_ = 0, retries_ = 0;
  int64_t next_address_ = 0;  // segments are never adjacent for the allocator
  Free small_, large_;
  std::map<int64_t, std::unique_ptr<Block>> blocks_;  // by address
  std::unordered_map<int64_t, Block*> live_;          // by the caller's number
};

/// Peaks of one phase, or of the whole trace.
struct CudaPhase {
  uint32_t phase = 0;           ///< id of the phase, see memory/phase.h
  int64_t allocated_bytes = 0;  ///< highest bytes of live blocks in it
  int64_t reserved_bytes = 0;   ///< highest bytes of all segments in it
};

/// What a trace needs on a card. A value.
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
