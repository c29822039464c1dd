// Defines the record of an event log, as values: every allocation and free of one device in order,
// and the functions that read figures out of it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tare/memory/live_block.h"

namespace tare {
enum class Category;  // accountable.h
}

namespace tare::memory {

/// Distinguishes allocations from frees.
enum class EventKind : uint8_t { allocation, free };

/// Records one allocation or free, in 40 bytes.
struct MemoryEvent {
  int64_t time_ns = 0;        ///< since the log was opened; never falls from one event to the next
  int64_t bytes = 0;          ///< size of the block, > 0
  uint64_t block = 0;         ///< LiveBlock::sequence; an allocation and its free have the same
  uint32_t phase = 0;         ///< id of the phase in force, see phase.h
  uint32_t allocated_in = 0;  ///< id of the phase the block was allocated in
  EventKind kind = EventKind::allocation;  ///< what happened to the block
  bool library_workspace = false;          ///< of a free: LiveBlock::library_workspace
  uint32_t stack = 0;  ///< that allocated the block, 0 outside CallSites; see call_stack.h
};
static_assert(sizeof(MemoryEvent) == 40);

/// Holds the newest events of one device, and the blocks that are alive after them, taken at the
/// same moment. Walking back from the end gives the live blocks at every event exactly, also if
/// older events were dropped and for blocks allocated before the log was opened. A value.
struct EventHistory {
  c10::Device device = c10::kCPU;     ///< whose events these are
  std::vector<MemoryEvent> events{};  ///< oldest first
  uint64_t dropped = 0;               ///< older events beyond the capacity of the log
  std::vector<LiveBlock> alive{};     ///< after the last event, oldest first
  int64_t span_ns = 0;                ///< from the opening of the log until the history was taken
  /// Maps blocks by number to categories; empty until assign_categories() of block_categories.h.
  std::unordered_map<uint64_t, Category> categories{};
};

/// Returns the live bytes before the first event of the history; never negative.
[[nodiscard]] int64_t bytes_at_start(const EventHistory& history);

/// Returns the blocks alive after the first `events` events, oldest first: 0 for the start,
/// events.size() for the end. A block that is no longer alive at the end has no data pointer.
/// Throws ConfigError if there are fewer events.
[[nodiscard]] std::vector<LiveBlock> alive_after(const EventHistory& history, size_t events);

/// Describes the moment with the most live bytes; the first of equal ones.
struct PeakMoment {
  size_t events = 0;    ///< how many events had happened; 0: before the first
  int64_t bytes = 0;    ///< live at that moment
  int64_t time_ns = 0;  ///< of the event, since the log was opened
};
/// Returns the moment of a history's peak.
[[nodiscard]] PeakMoment peak_of(const EventHistory& history);

}  // namespace tare::memory
