// Adds memory columns to the rows of the epochs.
#include "tare/callback/memory_log.h"

#include "tare/callback/registry.h"
#include "tare/memory/snapshot.h"

namespace tare {
namespace {
constexpr double kMiB = 1 << 20;
}

Action MemoryLog::before_epoch(FitContext& context) {
  const auto device = context.learner.device();
  start_bytes_ = memory::backend(device).usage().allocated_bytes;
  scope_ = std::make_unique<memory::PeakScope>(device);
  return Action::proceed;
}

Action MemoryLog::after_epoch(FitContext& context) {
  if (!scope_) return Action::proceed;
  const auto snapshot = memory::take_snapshot(context.learner.device());
  const int64_t now = snapshot.allocated_bytes;
  context.row.metrics.push_back({"used_mib", static_cast<double>(now - start_bytes_) / kMiB});
  context.row.metrics.push_back(
      {"peak_mib", static_cast<double>(scope_->peak_bytes() - start_bytes_) / kMiB});
  context.row.metrics.push_back(
      {"unexplained_mib", static_cast<double>(snapshot.unexplained_bytes) / kMiB});
  scope_.reset();
  return Action::proceed;
}

Action MemoryLog::after_fit(FitContext&) {
  scope_.reset();
  return Action::proceed;
}

namespace callbacks {
void add_memory_log(Registry& all) {
  all.add("memory_log", "adds growth, peak and unexplained memory to the table of the epochs",
          [] { return std::make_shared<MemoryLog>(); });
}
}  // namespace callbacks

}  // namespace tare
