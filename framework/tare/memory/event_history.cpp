// Finds the peak of a history, and what was alive at it.
#include "tare/memory/event_history.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "tare/base/error.h"

namespace tare::memory {
namespace {

int64_t signed_bytes(const MemoryEvent& event) {
  return event.kind == EventKind::allocation ? event.bytes : -event.bytes;
}

}  // namespace

int64_t bytes_at_start(const EventHistory& history) {
  int64_t bytes = 0;
  for (const auto& block : history.alive) bytes += block.bytes;
  for (const auto& event : history.events) bytes -= signed_bytes(event);
  return bytes;
}

std::vector<LiveBlock> alive_after(const EventHistory& history, size_t events) {
  if (events > history.events.size()) {
    throw ConfigError("memory.alive_after", "there are " + std::to_string(history.events.size()) +
                                                " events, got " + std::to_string(events) +
                                                "; ask for at most that many");
  }
  std::unordered_map<uint64_t, LiveBlock> alive;
  for (const auto& block : history.alive) alive.emplace(block.sequence, block);
  for (size_t i = history.events.size(); i-- > events;) {
    const auto& event = history.events[i];
    if (event.kind == EventKind::allocation) {
      alive.erase(event.block);
    } else {
      alive.emplace(event.block,
                    LiveBlock{nullptr, event.bytes, event.block, event.allocated_in, event.stack});
    }
  }
  std::vector<LiveBlock> blocks;
  blocks.reserve(alive.size());
  for (const auto& [sequence, block] : alive) blocks.push_back(block);
  std::ranges::sort(blocks, {}, &LiveBlock::sequence);
  return blocks;
}

PeakMoment peak_of(const EventHistory& history) {
  PeakMoment peak{.bytes = bytes_at_start(history)};
  int64_t bytes = peak.bytes;
  for (size_t i = 0; i < history.events.size(); ++i) {
    bytes += signed_bytes(history.events[i]);
    if (bytes > peak.bytes) peak = {i + 1, bytes, history.events[i].time_ns};
  }
  return peak;
}

}  // namespace tare::memory
