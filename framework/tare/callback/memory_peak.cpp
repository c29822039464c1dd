// Keeps the snapshot of a fit's largest event.
#include "tare/callback/memory_peak.h"

#include "tare/base/bytes.h"
#include "tare/memory/backend.h"

namespace tare {

Action MemoryPeak::before_fit(FitContext&) {
  snapshot_.reset();
  return Action::proceed;
}

Action MemoryPeak::look(const FitContext& context, Event event) {
  const auto device = context.learner.device();
  // usage() would also ask the system for the process's memory, at every event.
  const int64_t now = memory::PeakScope(device).start_bytes();
  if (snapshot_ && now <= snapshot_->allocated_bytes) return Action::proceed;
  snapshot_ = memory::take_snapshot(device);
  event_ = event;
  return Action::proceed;
}

std::string MemoryPeak::str() const {
  if (!snapshot_) return {};
  return std::string("largest ") + to_string(event_) + ", " +
         format_bytes(snapshot_->allocated_bytes) + ": " + snapshot_->summary();
}

}  // namespace tare
