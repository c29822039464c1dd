// Work that is done for real and traced on the meta device, and what both allocated.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tare/memory/event_log.h"
#include "tare/trace/trace.h"

namespace tare::plan {

/// Births as {block, bytes}, frees as {block, 0}; blocks are numbered in order of birth.
using Sequence = std::vector<std::pair<int64_t, int64_t>>;

inline Sequence sequence(const Trace& trace) {
  Sequence all;
  for (const Event& event : trace.events) all.emplace_back(event.block, event.bytes);
  return all;
}

/// Returns the allocations and frees of the work on the host when it is done for real.
inline Sequence host_sequence(const std::function<void()>& work) {
  const memory::EventLog log;
  work();
  Sequence all;
  std::unordered_map<uint64_t, int64_t> numbers;  // of the blocks born in the work
  for (const memory::MemoryEvent& event : log.history().events) {
    if (event.kind == memory::EventKind::allocation) {
      const auto number = static_cast<int64_t>(numbers.size());
      numbers[event.block] = number;
      all.emplace_back(number, event.bytes);
    } else if (const auto at = numbers.find(event.block); at != numbers.end()) {
      all.emplace_back(at->second, 0);
    }
  }
  return all;
}

/// "" if the two are equal, else the first event that differs.
inline std::string difference(const Sequence& host, const Trace& trace) {
  const Sequence plan = sequence(trace);
  const auto text = [](const Sequence& from, size_t i) {
    if (i >= from.size()) return std::string("nothing");
    const auto [block, bytes] = from[i];
    return bytes > 0 ? "block " + std::to_string(block) + " of " + std::to_string(bytes) + " bytes"
                     : "block " + std::to_string(block) + " freed";
  };
  for (size_t i = 0; i < std::max(host.size(), plan.size()); ++i) {
    if (i < host.size() && i < plan.size() && host[i] == plan[i]) continue;
    std::ostringstream out;
    out << "event " << i << " of " << host.size() << ": host " << text(host, i) << ", plan "
        << text(plan, i);
    if (i < plan.size()) out << " in " << trace.ops[trace.events[i].op];
    return out.str();
  }
  return "";
}

}  // namespace tare::plan
