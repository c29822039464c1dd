// Records traces of real work on the host, and extends them to other numbers of samples.
#include "tare/trace/host_trace.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/memory/block_categories.h"
#include "tare/memory/event_log.h"
#include "tare/memory/host_allocator.h"
#include "tare/trace/not_plannable.h"

namespace tare::plan {
namespace {

/// The recording in progress; null: none.
std::mutex mutex;
class HostRecording* current = nullptr;

class HostRecording {
 public:
  explicit HostRecording(size_t capacity) : log_({.capacity = capacity}) {
    const std::lock_guard lock(mutex);
    if (current)
      throw StateError("plan.host_trace", "while another is being recorded",
                       "record one after the other");
    current = this;
  }
  ~HostRecording() {
    const std::lock_guard lock(mutex);
    current = nullptr;
  }
  HostRecording(const HostRecording&) = delete;
  HostRecording& operator=(const HostRecording&) = delete;

  void mark(const std::string& name) { marks_.push_back({name, log_.history().events.size()}); }
  void note(const Ledger& ledger) { categories_.merge(memory::categories_now(c10::kCPU, ledger)); }
  [[nodiscard]] Trace finish() const {
    const memory::EventHistory history = log_.history();
    if (history.dropped > 0)
      throw StateError("plan.host_trace", "in too many allocations", "probe a smaller part");
    Trace trace{.ops = {""}};
    std::unordered_map<uint64_t, int64_t> numbers;
    std::vector<size_t> kept(1, 0);  // how many of the first i events are the work's
    for (const memory::MemoryEvent& event : history.events) {
      const bool birth = event.kind == memory::EventKind::allocation;
      if (birth) numbers.emplace(event.block, static_cast<int64_t>(numbers.size()));
      const auto at = numbers.find(event.block);
      if (at != numbers.end())
        trace.events.push_back({at->second, birth ? event.bytes : 0, event.phase, 0});
      kept.push_back(trace.events.size());
    }
    for (const Mark& mark : marks_) trace.marks.push_back({mark.name, kept[mark.event]});
    if (!marks_.empty()) trace.events.resize(trace.marks.back().event);
    for (const auto& [block, category] : categories_)
      if (const auto at = numbers.find(block); at != numbers.end())
        trace.categories.emplace(at->second, category);
    return trace;
  }

 private:
  memory::EventLog log_;
  std::vector<Mark> marks_;
  memory::BlockCategories categories_;
};

bool same_events(const Trace& a, const Trace& b) {
  return std::ranges::equal(a.events, b.events,
                            [](const Event& x, const Event& y) {
                              return x.block == y.block && (x.bytes > 0) == (y.bytes > 0) &&
                                     x.phase == y.phase;
                            }) &&
         std::ranges::equal(a.marks, b.marks, [](const Mark& x, const Mark& y) {
           return x.name == y.name && x.event == y.event;
         });
}

[[noreturn]] void refuse(const char* reason) {
  throw NotPlannable("a probe", reason, "measure it by a run");
}

}  // namespace

Trace host_trace(const std::function<void()>& body, size_t capacity) {
  if (!memory::host_allocator::installed())
    throw StateError("plan.host_trace", "without Tare's host allocator",
                     "let no other library replace LibTorch's allocator");
  HostRecording recording(capacity);
  body();
  return recording.finish();
}

bool host_mark(const std::string& name) {
  const std::lock_guard lock(mutex);
  if (current) current->mark(name);
  return current != nullptr;
}

bool host_note(const Ledger& ledger) {
  const std::lock_guard lock(mutex);
  if (current) current->note(ledger);
  return current != nullptr;
}

AffineTrace::AffineTrace(const At& trace_at, Point base, const Point& other, const Point& third)
    : base_(std::move(base)),
      trace_(trace_at(base_)),
      steps_(base_.size(), 0),
      rises_(base_.size()) {
  for (size_t number = 0; number < base_.size(); ++number) {
    steps_[number] = other[number] - base_[number];
    if (steps_[number] == 0) continue;
    Point moved = base_;
    moved[number] = other[number];
    const Trace there = trace_at(moved);
    if (!same_events(trace_, there))
      refuse("allocates in another order for another number of samples");
    for (size_t i = 0; i < trace_.events.size(); ++i)
      rises_[number].push_back(there.events[i].bytes - trace_.events[i].bytes);
  }
  const Trace real = trace_at(third);
  if (!same_events(real, trace_))
    refuse("allocates in another order for another number of samples");
  const auto expected = at(third);
  if (!expected ||
      !std::ranges::equal(real.events, expected->events, {}, &Event::bytes, &Event::bytes))
    refuse("takes memory that is not affine in the number of samples");
}

std::optional<Trace> AffineTrace::at(const Point& point) const {
  Trace trace = trace_;
  for (size_t number = 0; number < steps_.size(); ++number) {
    const int64_t distance = point[number] - base_[number];
    for (size_t i = 0; i < rises_[number].size(); ++i) {
      const int64_t bytes = rises_[number][i] * distance;
      if (bytes % steps_[number] != 0) return std::nullopt;
      trace.events[i].bytes += bytes / steps_[number];
    }
  }
  return trace;
}

}  // namespace tare::plan
