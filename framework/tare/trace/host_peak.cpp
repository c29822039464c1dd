// Adds up the live bytes of a trace.
#include "tare/trace/host_peak.h"

#include <algorithm>
#include <unordered_map>

namespace tare::plan {
namespace {

/// Returns the live bytes after each event.
std::vector<int64_t> live_bytes(const Trace& trace) {
  std::unordered_map<int64_t, int64_t> sizes;
  std::vector<int64_t> live;
  live.reserve(trace.events.size());
  int64_t now = 0;
  for (const Event& event : trace.events) {
    if (event.bytes > 0) sizes[event.block] = event.bytes;
    now += event.bytes > 0 ? event.bytes : -sizes[event.block];
    live.push_back(now);
  }
  return live;
}

std::vector<Alive> alive_at(const Trace& trace, size_t moment) {
  std::unordered_map<int64_t, const Event*> blocks;
  for (size_t i = 0; i <= moment; ++i) {
    const Event& event = trace.events[i];
    if (event.bytes > 0) {
      blocks[event.block] = &event;
    } else {
      blocks.erase(event.block);
    }
  }
  std::vector<Alive> all;
  for (const auto& [number, birth] : blocks) {
    auto at = std::ranges::find(all, birth->phase, &Alive::phase);
    if (at == all.end()) at = all.insert(all.end(), {.phase = birth->phase});
    at->bytes += birth->bytes;
    ++at->blocks;
  }
  std::ranges::sort(all, [](const Alive& a, const Alive& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.phase < b.phase;
  });
  return all;
}

void raise(Peak& peak, int64_t bytes, size_t event) {
  if (bytes <= peak.peak_bytes) return;
  peak.peak_bytes = bytes;
  peak.event = event;
}

}  // namespace

const Peak* HostPeak::phase(uint32_t id) const {
  const auto at = std::ranges::find(phases, id, &Peak::phase);
  return at == phases.end() ? nullptr : &*at;
}

HostPeak host_peak(const Trace& trace) {
  HostPeak result;
  const auto live = live_bytes(trace);
  for (size_t i = 0; i < live.size(); ++i) {
    const uint32_t phase = trace.events[i].phase;
    auto at = std::ranges::find(result.phases, phase, &Peak::phase);
    if (at == result.phases.end()) at = result.phases.insert(result.phases.end(), {.phase = phase});
    // The phase may have been entered with more than its first event leaves.
    const bool entered = i > 0 && trace.events[i - 1].phase != phase;
    if (entered) raise(*at, live[i - 1], i - 1);
    raise(*at, live[i], i);
    raise(result.whole, live[i], i);
    at->end_bytes = result.whole.end_bytes = live[i];
  }
  if (live.empty()) return result;
  result.whole.alive = alive_at(trace, result.whole.event);
  for (Peak& peak : result.phases) peak.alive = alive_at(trace, peak.event);
  return result;
}

}  // namespace tare::plan
