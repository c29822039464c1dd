// Records the allocations and frees of a device while a log is open.
#include "tare/memory/event_log.h"

#include <string>

#include "tare/base/error.h"
#include "tare/memory/backend.h"

namespace tare::memory {
namespace {

constexpr size_t kMaxCapacity = size_t{1} << 30;

size_t checked(size_t capacity) {
  if (capacity == 0 || capacity > kMaxCapacity) {
    throw ConfigError("memory.event_log", "capacity must be 1 to " + std::to_string(kMaxCapacity) +
                                              " events, got " + std::to_string(capacity));
  }
  return capacity;
}

}  // namespace

EventLog::EventLog(const EventLogOptions& options)
    : backend_(backend(options.device)), ring_(checked(options.capacity)) {
  backend_.open_ring(ring_);
}

EventLog::~EventLog() { backend_.close_ring(ring_); }

EventHistory EventLog::history() const { return backend_.history(ring_); }

double event_cost_ns() {
  constexpr int kEvents = 20'000;
  EventRing ring(kEvents / 4);
  OpenRings rings;
  rings.open(ring);
  const int64_t start = now_ns();
  for (int i = 0; i < kEvents; ++i)
    rings.note(EventKind::allocation, LiveBlock{nullptr, 1, 1, 0, 0}, 0);
  return static_cast<double>(now_ns() - start) / kEvents;
}

}  // namespace tare::memory
