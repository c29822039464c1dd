// The allocator of all host tensors: exact counts, a budget, and failure on demand for tests.
//
// Counts are requested bytes. Not counted: header and alignment (up to 128 bytes a block), memory
// that LibTorch does not take from its tensor allocator (oneDNN's generated code, MKL's buffers,
// thread stacks, std containers, mapped files), and tensors on foreign memory (from_blob). Only the
// resident set includes those.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/live_block.h"
#include "tare/memory/peak_record.h"

namespace tare::memory {

class EventRing;      // event_ring.h
struct EventHistory;  // event_history.h

/// Holds counters that are consistent with each other: they are read under one lock.
struct HostCounters {
  int64_t live_bytes = 0;   ///< of the blocks that are alive
  int64_t live_blocks = 0;  ///< that are alive
  int64_t peak_bytes = 0;   ///< since the process began
  uint64_t births = 0;      ///< blocks allocated since the process began
};

/// Serves all host tensors, from before main (see docs/decisions/0002-host-allocator.md). All
/// calls are thread-safe; a block may be freed on another thread than it was allocated on.
/// Allocations share one lock. Zero bytes allocate nothing.
namespace host_allocator {

/// Returns the counters of this moment.
[[nodiscard]] HostCounters counters();

/// Limits live bytes: an allocation that would exceed it throws OutOfMemory and changes nothing.
/// May be below what is live now. Unset: no limit.
void set_budget(std::optional<int64_t> bytes);
/// Returns the budget that was set last; unset: no limit.
[[nodiscard]] std::optional<int64_t> budget();

/// Called on the thread whose allocation is refused, before OutOfMemory is thrown and without a
/// lock held. Returns how to do with less, for a message that has no such advice yet; "": unknown.
using RefusalHook = std::string (*)(int64_t asked_bytes);
/// Makes every refusal from now on call the hook; null: none. For the units that report refusals.
void set_refusal_hook(RefusalHook hook);

/// Makes the k-th allocation from now on (1 is the next) throw OutOfMemory, once; 0 disarms. For
/// tests.
void fail_at(uint64_t k);
/// Sets whether every allocation throws OutOfMemory. For tests.
void fail_all(bool on);

/// Does the work and returns how many bytes it asks for first on this thread; that block is
/// refused, and the work ends by an exception that passes through it. 0: it ends without asking.
[[nodiscard]] int64_t first_request(const std::function<void()>& work);

/// Returns the live blocks with a number above `born_after`, oldest first. Holds the lock
/// meanwhile, for a time proportional to their number.
[[nodiscard]] std::vector<LiveBlock> live_blocks(uint64_t born_after = 0);

/// Records events for an EventLog; see DeviceBackend.
void open_ring(EventRing& ring);
/// Ends what open_ring() began.
void close_ring(EventRing& ring);
/// Returns the ring's events and the live blocks after them, taken at the same moment.
[[nodiscard]] EventHistory history(const EventRing& ring);

/// Starts a measurement of the peak; `record` must outlive it.
void open_peak(PeakRecord& record);
/// Ends what open_peak() began; `record` keeps its last figures.
void close_peak(PeakRecord& record);
void refresh_peaks();  ///< brings every open record up to date

/// Measures the nanoseconds that an allocation of 256 bytes and its free take above malloc and free
/// alone. At least 0.
[[nodiscard]] double record_cost_ns();

/// Makes this LibTorch's CPU allocator; any program that links init() does so before main. Returns
/// false, and changes nothing, if an allocator other than LibTorch's default is already set.
bool install();
/// Whether this LibTorch's CPU allocator is the one of this file, or one that passes its requests
/// on to it.
[[nodiscard]] bool installed();

}  // namespace host_allocator
}  // namespace tare::memory
