// MemoryMonitorOptions: how a run prints what holds its memory.
#pragma once

#include <cstdint>
#include <string>

#include "tare/config/field.h"

namespace tare::report {

/// Sets how a run prints what holds its memory, see recipe/memory_monitor.h.
struct MemoryMonitorOptions {
  bool enabled = false;        ///< false: prints nothing
  int64_t interval_s = 300;    ///< seconds between two snapshots, 1 to 31,536,000
  int64_t top = 10;            ///< lines of each section at most
  int64_t trace = 1;           ///< call stacks that are printed: those that hold the most
  std::string tag = "memory";  ///< the word in front of each line
};
/// Visits the fields but the tag, with the name that a configuration has for the interval.
void visit_memory_monitor(auto& visit, MemoryMonitorOptions& o, const char* interval_name) {
  visit("enabled", o.enabled);
  visit(interval_name, o.interval_s, config::between(1, 31'536'000));  // a year
  visit("top", o.top, config::at_least(0));
  visit("trace", o.trace, config::at_least(0));
}
void visit_fields(auto& visit, MemoryMonitorOptions& o) {
  visit_memory_monitor(visit, o, "interval_s");
  visit("tag", o.tag);
}

}  // namespace tare::report
