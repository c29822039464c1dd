// MemoryMonitorOptions: how a run prints what holds its memory.
#pragma once

#include <cstdint>

#include "tare/config/field.h"

namespace tare::report {

/// `mem_trace` of a run: it prints what holds its memory (see recipe/memory_monitor.h).
struct MemoryMonitorOptions {
  bool enabled = false;  ///< false: prints nothing
  int64_t delay = 300;   ///< seconds between two looks, 1 to 31,536,000
  int64_t top = 10;      ///< lines of each section at most
  int64_t trace = 1;     ///< call stacks that are printed: those that hold the most
};
void visit_fields(auto& visit, MemoryMonitorOptions& o) {
  visit("enabled", o.enabled);
  visit("delay", o.delay, config::between(1, 31'536'000));  // a year
  visit("top", o.top, config::at_least(0));
  visit("trace", o.trace, config::at_least(0));
}

}  // namespace tare::report
