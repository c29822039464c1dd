// Finds the marks of a trace.
#include "tare/trace/trace_events.h"

#include <algorithm>

#include "tare/base/error.h"

namespace tare::plan {

size_t Trace::at(std::string_view mark) const {
  if (const auto event = find(mark)) return *event;
  throw ConfigError("plan.trace", "has no mark named '" + printable(mark) + "'; mark() it");
}

std::optional<size_t> Trace::find(std::string_view mark) const {
  const auto found = std::ranges::find(marks, mark, &Mark::name);
  if (found == marks.end()) return std::nullopt;
  return found->event;
}

}  // namespace tare::plan
