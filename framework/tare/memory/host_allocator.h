// The allocator behind every host tensor: counts to the byte, bounds, and fails on demand.
//
// Tracked bytes are requested bytes. Not seen: a header and alignment of up to 128 bytes a block,
// memory that LibTorch does not take from its tensor allocator (oneDNN's generated code, MKL's
// buffers, thread stacks, std containers, mapped files), and tensors over memory of others
// (from_blob). The resident set beside it shows those.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tare/memory/backend.h"

namespace tare::memory {

/// Counters, exact together: taken under one lock.
struct HostCounters {
  int64_t live_bytes = 0;
  int64_t live_blocks = 0;
  int64_t peak_bytes = 0;  ///< since the process began
  uint64_t births = 0;     ///< blocks allocated so far
};

/// Controls of the one host allocator, which is in force from program start, before main (see
/// init.h). All calls are thread-safe; blocks may be freed on another thread than the one that
/// allocated them. An allocation takes one lock that is free unless two threads allocate at the
/// same moment. Zero bytes allocate nothing.
namespace host_allocator {

[[nodiscard]] HostCounters counters();

/// Bounds live bytes: an allocation that would exceed it throws OutOfMemory and changes nothing.
/// May lie below what is live now. Unset: no bound.
void set_budget(std::optional<int64_t> bytes);
[[nodiscard]] std::optional<int64_t> budget();

/// The k-th allocation from now on (1 is the next) throws OutOfMemory, once; 0 disarms. For tests.
void fail_at(uint64_t k);
/// While true, every allocation throws OutOfMemory. For tests.
void fail_all(bool on);

/// Live blocks with a number above `born_after`, oldest first. Takes the lock for the time of the
/// walk, which ends at the first older block.
[[nodiscard]] std::vector<LiveBlock> live_blocks(uint64_t born_after = 0);

void open_peak(PeakRecord& record);
void close_peak(PeakRecord& record);
void refresh_peaks();  ///< brings every open record up to now

/// Puts the allocator in force; done before main by whatever program links init(). Returns false,
/// and changes nothing, when another allocator than LibTorch's default is there already.
bool install();
[[nodiscard]] bool installed();

}  // namespace host_allocator
}  // namespace tare::memory
