// Where a device's allocator writes its events while an EventLog is open. For backends. Everything
// is in the header, because plug-ins that are loaded at run time use it too.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "tare/memory/event_history.h"

namespace tare::memory {

/// Returns the nanoseconds of a clock that never goes back; only differences have a meaning.
[[nodiscard]] inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Keeps the newest events, up to a number fixed at construction. Its memory is reserved there, so
/// that adding an event never allocates; the system provides the pages as they fill. Not
/// thread-safe: the backend's lock guards it.
class EventRing {
 public:
  /// Reserves the pages of `capacity` events.
  explicit EventRing(size_t capacity) : capacity_(capacity) { events_.reserve(capacity); }

  /// Adds the newest event; in a full ring it replaces the oldest.
  void add(const MemoryEvent& event) {
    if (events_.size() < capacity_) {
      events_.push_back(event);
      return;
    }
    events_[oldest_] = event;
    oldest_ = oldest_ + 1 == capacity_ ? 0 : oldest_ + 1;
    ++dropped_;
  }

  /// Copies the events into a history that has reserved capacity() events.
  void copy_to(EventHistory& history) const {
    const auto split = events_.begin() + static_cast<std::ptrdiff_t>(oldest_);
    history.events.assign(split, events_.end());
    history.events.insert(history.events.end(), events_.begin(), split);
    history.dropped = dropped_;
    history.span_ns = now_ns() - opened_ns_;
  }

  [[nodiscard]] size_t capacity() const { return capacity_; }  ///< events that it can hold

 private:
  friend class OpenRings;

  size_t capacity_;
  std::vector<MemoryEvent> events_;
  size_t oldest_ = 0;
  uint64_t dropped_ = 0;
  int64_t opened_ns_ = 0;
  EventRing* next_ = nullptr;
};

/// Lists the open rings of one device. Logs may nest and overlap; each sees every event. Not
/// thread-safe: the backend's lock guards it.
class OpenRings {
 public:
  [[nodiscard]] bool any() const { return first_ != nullptr; }  ///< whether a ring is open

  /// Adds a ring, which must outlive its close().
  void open(EventRing& ring) {
    ring.opened_ns_ = now_ns();
    ring.next_ = first_;
    first_ = &ring;
  }
  /// Removes a ring; one that is not open is ignored.
  void close(EventRing& ring) {
    auto** link = &first_;
    while (*link && *link != &ring) link = &(*link)->next_;
    if (*link) *link = ring.next_;
  }

  /// Records an event of a block; `phase` is the phase in force.
  void note(EventKind kind, const LiveBlock& block, uint32_t phase) {
    const int64_t now = now_ns();
    for (auto* ring = first_; ring; ring = ring->next_)
      ring->add({now - ring->opened_ns_, block.bytes, block.sequence, phase, block.phase, kind,
                 block.library_workspace, block.stack});
  }

 private:
  EventRing* first_ = nullptr;
};

}  // namespace tare::memory
