// Reports refused allocations, and estimates the batch that would have fitted.
#include "tare/memory/oom_report.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "tare/base/bytes.h"
#include "tare/base/immortal.h"
#include "tare/memory/backend.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/phase.h"
#include "tare/memory/request_text.h"

namespace tare::memory {

/// The open watches and the newest report.
struct Watches {
  std::mutex mutex;
  OutOfMemoryWatch* innermost = nullptr;
  std::thread::id thread;  // of the training
  std::shared_ptr<const OutOfMemoryReport> newest;

  [[nodiscard]] Workload workload() const {
    Workload all;
    for (const auto* watch = innermost; watch; watch = watch->outer_) {
      if (all.batch == 0) {
        all.batch = watch->workload_.batch;
        all.in_parts = watch->workload_.in_parts;
      }
      if (all.setting.empty()) all.setting = watch->workload_.setting;
    }
    return all;
  }
};

namespace {

Watches& watches() {
  static Immortal<Watches> all;
  return *all;
}

constinit std::atomic<bool> watching{false};
constinit thread_local bool reporting = false;  // a ledger that allocates must not report again

/// Whether the training thread waits for this one, so that its ledgers stand still: it is the same,
/// or the one that runs a device's backward.
bool may_read_ledgers(c10::Device device, std::thread::id training) {
  return std::this_thread::get_id() == training ||
         (!device.is_cpu() && current_phase() == static_cast<uint32_t>(PhaseKind::backward));
}

bool grows_with_batch(uint32_t phase) {
  switch (static_cast<PhaseKind>(phase)) {
    case PhaseKind::data:
    case PhaseKind::forward:
    case PhaseKind::backward:
    case PhaseKind::validate:
    case PhaseKind::predict:
      return true;
    default:
      return false;
  }
}

std::optional<int64_t> fitting_batch(const OutOfMemoryReport& report) {
  const int64_t batch = report.workload.batch;
  if (batch < 1) return {};
  const auto& snapshot = report.snapshot;
  int64_t growing = report.asked_bytes - snapshot.library_bytes;  // part of the workspace below
  for (const auto category : {Category::activations, Category::batch, Category::workspace})
    growing += snapshot.categories[category];
  const int64_t fixed = snapshot.allocated_bytes + report.asked_bytes - growing;
  const int64_t limit = report.budget_bytes.value_or(
      snapshot.allocated_bytes + backend(report.device).memory_info().available_bytes);
  const double share =
      static_cast<double>(std::max<int64_t>(0, limit - fixed)) / static_cast<double>(growing);
  return std::min(batch - 1, static_cast<int64_t>(share * static_cast<double>(batch)));
}

std::shared_ptr<const OutOfMemoryReport> make_report(c10::Device device, int64_t asked) {
  auto report = std::make_shared<OutOfMemoryReport>();
  std::thread::id training;
  {
    const std::lock_guard lock(watches().mutex);
    if (!watches().innermost) return nullptr;
    report->workload = watches().workload();
    training = watches().thread;
  }
  const uint32_t phase = current_phase();
  report->device = device;
  report->asked_bytes = asked;
  report->budget_bytes = backend(device).budget();
  report->phase = phase_name(phase);
  report->snapshot =
      may_read_ledgers(device, training) ? take_snapshot(device) : take_snapshot(device, Ledger());
  if (grows_with_batch(phase)) report->fitting_batch = fitting_batch(*report);
  const std::lock_guard lock(watches().mutex);
  if (!watches().newest || !std::current_exception()) watches().newest = report;
  return report;
}

std::string advise_on_host(int64_t asked_bytes) {
  const auto report = report_out_of_memory(c10::kCPU, asked_bytes);
  return report ? report->advice() : std::string();
}

}  // namespace

OutOfMemoryWatch::OutOfMemoryWatch(Workload workload) : workload_(std::move(workload)) {
  const std::lock_guard lock(watches().mutex);
  outer_ = watches().innermost;
  watches().innermost = this;
  if (outer_) return;
  watches().newest.reset();
  watches().thread = std::this_thread::get_id();
  host_allocator::set_refusal_hook(&advise_on_host);
  watching = true;
}

OutOfMemoryWatch::~OutOfMemoryWatch() {
  const std::lock_guard lock(watches().mutex);
  auto** link = &watches().innermost;
  while (*link && *link != this) link = &(*link)->outer_;
  if (*link) *link = outer_;
  watching = watches().innermost != nullptr;
}

std::shared_ptr<const OutOfMemoryReport> last_out_of_memory() {
  const std::lock_guard lock(watches().mutex);
  return watches().newest;
}

std::shared_ptr<const OutOfMemoryReport> report_out_of_memory(c10::Device device,
                                                              int64_t asked_bytes) noexcept {
  if (!watching.load(std::memory_order_relaxed) || reporting) return nullptr;
  reporting = true;
  std::shared_ptr<const OutOfMemoryReport> report;
  try {
    report = make_report(device, asked_bytes);
  } catch (...) {  // the refusal itself must reach the caller, whatever a ledger throws
    report = nullptr;
  }
  reporting = false;
  return report;
}

std::string OutOfMemoryReport::advice() const {
  if (!fitting_batch) return {};
  const std::string what = workload.in_parts ? "micro-batches of " : "batch ";
  const std::string instead = " instead of " + std::to_string(workload.batch);
  if (*fitting_batch == 0) {
    return "not even " + what + "1" + instead +
           " would have fitted, by a linear estimate; use a smaller model or more memory";
  }
  return what + std::to_string(*fitting_batch) + instead +
         " would have fitted up to this allocation, by a linear estimate";
}

std::string OutOfMemoryReport::str() const {
  std::string text = "out of memory on " + device.str() + " in phase " + phase + ": " +
                     request_text(asked_bytes, snapshot.allocated_bytes, budget_bytes);
  text += '\n' + snapshot.str(5);
  if (fitting_batch) text += advice() + '\n';
  return text;
}

}  // namespace tare::memory
