// Allocates all host tensors, and keeps their exact count.
#include "tare/memory/host_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/convolution_bounds.h"
#include "tare/memory/event_ring.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/memory/resident_limit.h"

namespace tare::memory {
namespace {

constexpr size_t kAlignment = 64;  // what LibTorch's kernels expect of the default allocator
constexpr int64_t kNoBudget = std::numeric_limits<int64_t>::max();

/// The header in front of every block. The blocks form a list in order of birth.
struct alignas(kAlignment) Header {
  void* raw = nullptr;  // what malloc gave
  int64_t bytes = 0;
  uint64_t sequence = 0;
  Header* older = nullptr;
  Header* younger = nullptr;
  uint32_t phase = 0;
  uint32_t stack = 0;
  uint32_t step = 0;

  void* data() { return this + 1; }
  LiveBlock live() { return {data(), bytes, sequence, phase, stack, step}; }
  static Header* of(void* data) { return static_cast<Header*>(data) - 1; }
};
static_assert(sizeof(Header) == kAlignment);

class SpinLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire))
      while (held_.load(std::memory_order_relaxed)) std::this_thread::yield();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

enum class AllocationOutcome { granted, over_budget, failed_on_demand };

/// Trivially destructible and constant-initialised: blocks are born before and die after all static
/// objects.
struct AllocationRegistry {
  SpinLock lock;
  int64_t live_bytes = 0, live_blocks = 0;
  int64_t recent_peak = 0;  // since the last boundary
  int64_t total_peak = 0;   // up to the last boundary
  uint64_t births = 0;
  int64_t budget = kNoBudget;
  uint64_t fail_countdown = 0;
  bool fail_all = false;
  Header* youngest = nullptr;
  OpenPeaks peaks;
  OpenRings rings;

  AllocationOutcome register_(Header& block) {
    if (fail_all || (fail_countdown > 0 && --fail_countdown == 0)) [[unlikely]]
      return AllocationOutcome::failed_on_demand;
    if (block.bytes > budget - live_bytes) [[unlikely]]
      return AllocationOutcome::over_budget;
    live_bytes += block.bytes;
    ++live_blocks;
    recent_peak = std::max(recent_peak, live_bytes);
    block.sequence = ++births;
    block.older = youngest;
    if (youngest) youngest->younger = &block;
    youngest = &block;
    if (rings.any()) [[unlikely]]
      rings.note(EventKind::allocation, block.live(), block.phase);
    return AllocationOutcome::granted;
  }

  void unregister(Header& block) {
    live_bytes -= block.bytes;
    --live_blocks;
    if (block.older) block.older->younger = block.younger;
    (block.younger ? block.younger->older : youngest) = block.older;
    if (rings.any()) [[unlikely]]
      rings.note(EventKind::free, block.live(), current_phase());
  }

  /// Appends the live blocks above a number, oldest first.
  void list(uint64_t born_after, std::vector<LiveBlock>& blocks) const {
    for (auto* block = youngest; block && block->sequence > born_after; block = block->older)
      blocks.push_back(block->live());
    std::reverse(blocks.begin(), blocks.end());
  }

  void set_boundary() {
    peaks.fold(recent_peak);
    total_peak = std::max(total_peak, recent_peak);
    recent_peak = live_bytes;
  }
};
constinit AllocationRegistry registry;

constinit std::atomic<host_allocator::RefusalHook> refusal_hook{nullptr};

[[noreturn]] void refuse(int64_t bytes, std::string advice) {
  std::unique_lock lock(registry.lock);
  const int64_t live = registry.live_bytes;
  const int64_t budget = registry.budget;
  lock.unlock();
  const auto limit = budget == kNoBudget ? std::nullopt : std::optional(budget);
  const auto hook = refusal_hook.load();
  std::string reported = hook ? hook(bytes) : std::string();
  if (advice.empty()) advice = std::move(reported);
  throw OutOfMemory(c10::kCPU, bytes, live, limit, std::move(advice));
}

// NOLINTBEGIN(cppcoreguidelines-no-malloc, cppcoreguidelines-owning-memory): this is the allocator.

// malloc and an own alignment instead of posix_memalign: that one bypasses glibc's per-thread
// cache.
Header* make_block(size_t bytes) {
  const size_t overhead = sizeof(Header) + kAlignment;
  if (bytes > static_cast<size_t>(kNoBudget) - overhead) return nullptr;
  void* const raw = std::malloc(bytes + overhead);
  if (!raw) return nullptr;
  void* place = raw;
  size_t space = bytes + overhead;
  std::align(kAlignment, bytes + sizeof(Header), place, space);
  return std::construct_at(static_cast<Header*>(place), Header{.raw = raw,
                                                               .bytes = static_cast<int64_t>(bytes),
                                                               .phase = current_phase(),
                                                               .stack = capture_stack(),
                                                               .step = current_step()});
}

void release(void* data) {
  if (!data) return;
  Header* const block = Header::of(data);
  {
    const std::lock_guard lock(registry.lock);
    registry.unregister(*block);
  }
  std::free(block->raw);
}

/// Ends the work of first_request().
struct FirstRequest {
  int64_t bytes = 0;
};
std::atomic<int> first_requests{0};  // that are being waited for, on any thread
thread_local bool waits_for_request = false;

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::kCPU};
    const auto asked = static_cast<int64_t>(std::min(bytes, static_cast<size_t>(kNoBudget)));
    if (first_requests.load(std::memory_order_relaxed) != 0) [[unlikely]]
      if (waits_for_request) throw FirstRequest{asked};
    if (resident_limit::in_force()) [[unlikely]] {
      const int64_t live = host_allocator::counters().live_bytes;
      if (!resident_limit::admits(asked, live)) refuse(asked, resident_limit::advice(live));
    }
    Header* const block = make_block(bytes);
    if (!block) refuse(asked, "the system refused it; use a smaller batch or free memory");
    std::unique_lock lock(registry.lock);
    const AllocationOutcome outcome = registry.register_(*block);
    lock.unlock();
    if (outcome == AllocationOutcome::granted)
      return {block->data(), block->data(), &release, c10::kCPU};
    std::free(block->raw);
    refuse(asked, outcome == AllocationOutcome::over_budget ? "" : "failed on demand by a test");
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// NOLINTEND(cppcoreguidelines-no-malloc, cppcoreguidelines-owning-memory)

HostAllocator& allocator() {
  static Immortal<HostAllocator> instance;  // static tensors may be freed after everything else
  return *instance;
}

// Before main, so that no tensor escapes the count and init() knows whether one came before it.
[[maybe_unused]] const bool in_force_before_main = host_allocator::install();

}  // namespace

namespace host_allocator {

HostCounters counters() {
  const std::lock_guard lock(registry.lock);
  return {registry.live_bytes, registry.live_blocks,
          std::max(registry.total_peak, registry.recent_peak), registry.births};
}

void set_budget(std::optional<int64_t> bytes) {
  if (bytes.value_or(0) < 0)
    throw ConfigError("memory.set_budget",
                      "the budget must be >= 0 bytes, got " + std::to_string(*bytes));
  const std::lock_guard lock(registry.lock);
  registry.budget = bytes.value_or(kNoBudget);
}

std::optional<int64_t> budget() {
  const std::lock_guard lock(registry.lock);
  return registry.budget == kNoBudget ? std::nullopt : std::optional(registry.budget);
}

void set_refusal_hook(RefusalHook hook) { refusal_hook = hook; }

void fail_at(uint64_t k) {
  const std::lock_guard lock(registry.lock);
  registry.fail_countdown = k;
}

void fail_all(bool on) {
  const std::lock_guard lock(registry.lock);
  registry.fail_all = on;
}

int64_t first_request(const std::function<void()>& work) {
  struct Waiting {
    Waiting() { ++first_requests, waits_for_request = true; }
    ~Waiting() { --first_requests, waits_for_request = false; }
  };
  try {
    const Waiting waiting;
    work();
  } catch (const FirstRequest& request) {
    return request.bytes;
  }
  return 0;
}

std::vector<LiveBlock> live_blocks(uint64_t born_after) {
  std::vector<LiveBlock> blocks;
  blocks.reserve(static_cast<size_t>(counters().live_blocks));
  const std::lock_guard lock(registry.lock);
  registry.list(born_after, blocks);
  return blocks;
}

void open_ring(EventRing& ring) {
  const std::lock_guard lock(registry.lock);
  registry.rings.open(ring);
}

void close_ring(EventRing& ring) {
  const std::lock_guard lock(registry.lock);
  registry.rings.close(ring);
}

EventHistory history(const EventRing& ring) {
  EventHistory history;
  history.events.reserve(ring.capacity());
  history.alive.reserve(static_cast<size_t>(counters().live_blocks));
  const std::lock_guard lock(registry.lock);
  ring.copy_to(history);
  registry.list(0, history.alive);
  return history;
}

void open_peak(PeakRecord& record) {
  const std::lock_guard lock(registry.lock);
  registry.set_boundary();
  registry.peaks.open(record, registry.live_bytes);
}

void close_peak(PeakRecord& record) {
  const std::lock_guard lock(registry.lock);
  registry.set_boundary();
  registry.peaks.close(record);
}

void refresh_peaks() {
  const std::lock_guard lock(registry.lock);
  registry.set_boundary();
}

// NOLINTBEGIN(cppcoreguidelines-no-malloc, cppcoreguidelines-owning-memory): what it measures.
double record_cost_ns() {
  constexpr int kPairs = 2000;
  constexpr size_t kBytes = 256;
  // The work is that on the registry of all blocks, which other threads use meanwhile.
  AllocationRegistry scratch;
  const auto time = [](auto pair) {
    const int64_t start = now_ns();
    for (int i = 0; i < kPairs; ++i) pair();
    return static_cast<double>(now_ns() - start) / kPairs;
  };
  const auto recorded = [&scratch] {
    Header* const block = make_block(kBytes);
    if (!block) return;
    for (const bool born : {true, false}) {
      const std::lock_guard lock(scratch.lock);
      if (born)
        static_cast<void>(scratch.register_(*block));
      else
        scratch.unregister(*block);
    }
    std::free(block->raw);
  };
  const auto alone = [] {
    void* raw = std::malloc(kBytes + sizeof(Header) + kAlignment);
    asm volatile("" : "+r"(raw));  // or the compiler omits the pair
    std::free(raw);
  };
  std::array<double, 7> rounds{};
  for (double& round : rounds) round = time(recorded) - time(alone);
  std::ranges::nth_element(rounds, rounds.begin() + rounds.size() / 2);
  return std::max(0.0, rounds[rounds.size() / 2]);
}
// NOLINTEND(cppcoreguidelines-no-malloc, cppcoreguidelines-owning-memory)

bool install() {
  if (installed()) return true;
  if (c10::GetCPUAllocator() != c10::GetDefaultCPUAllocator()) return false;
  c10::SetCPUAllocator(&allocator());
  keep_convolutions_in_bounds();
  return true;
}

// Zero bytes are served without a block, also through an allocator that passes requests on.
bool installed() { return c10::GetCPUAllocator()->allocate(0).get_deleter() == &release; }

}  // namespace host_allocator
}  // namespace tare::memory
