// Plays a trace on a device's allocator, and names what its peak holds.
#include "tare/trace/estimate.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "tare/memory/libtorch.h"
#include "tare/memory/phase.h"
#include "tare/trace/card_sum.h"
#include "tare/trace/cuda_cache.h"

namespace tare::plan {
namespace {

using memory::PhaseKind;

bool in(uint32_t phase, PhaseKind kind) { return phase == static_cast<uint32_t>(kind); }

/// The allocator of the target: what it has handed out and what it holds.
class Allocator {
 public:
  explicit Allocator(const Target& target)
      : target_(target), cache_(target.caches ? target.capacity_bytes : 0, target.cache) {}

  /// Sizes are remembered: a trace's free has none.
  [[nodiscard]] bool apply(const Event& event) {
    if (event.bytes == 0) {
      if (target_.caches) cache_.release(event.block);
      allocated_ -= sizes_[event.block];
      sizes_.erase(event.block);
      return true;
    }
    return allocate(event.block, event.bytes);
  }
  [[nodiscard]] bool allocate(int64_t block, int64_t bytes) {
    if (target_.caches && !cache_.allocate(block, bytes, stream_)) return false;
    const int64_t size = target_.caches ? cache_.allocated_bytes() - allocated_ : bytes;
    sizes_[block] = size;
    allocated_ += size;
    return target_.caches || allocated_ <= target_.capacity_bytes;
  }
  /// Takes a mark that says where what is allocated from now on comes from. Recorded steps share
  /// one pool, which stays.
  void take(const std::string& mark) {
    if (mark == kCacheReturned) cache_.return_segments();
    if (mark == kRecordPrepared) stream_ = kRecording;
    if (mark == kRecordBegins) stream_ = kRecorded;
    if (mark == kRecordEnds) stream_ = 0;
    if (stream_ == kRecorded) cache_.keep(kRecorded);
  }
  [[nodiscard]] bool records() const { return stream_ == kRecorded; }
  [[nodiscard]] int64_t allocated() const { return allocated_; }
  [[nodiscard]] int64_t reserved() const {
    return target_.caches ? cache_.reserved_bytes() : allocated_;
  }
  [[nodiscard]] int64_t size(int64_t block) const { return sizes_.at(block); }
  [[nodiscard]] int64_t retries() const { return cache_.retries(); }

 private:
  static constexpr int kRecorded = 1, kRecording = 2;

  const Target& target_;
  CudaCache cache_;
  int stream_ = 0;
  int64_t allocated_ = 0;
  std::unordered_map<int64_t, int64_t> sizes_;  // as allocated
};

Category category_of(const Trace& trace, const Event& birth, bool outlives_forward) {
  const auto noted = trace.categories.find(birth.block);
  if (noted != trace.categories.end()) return noted->second;
  if (in(birth.phase, PhaseKind::data)) return Category::batch;
  if (in(birth.phase, PhaseKind::forward) && outlives_forward) return Category::activations;
  return Category::workspace;
}

/// Returns the blocks that are allocated in a forward and not freed in the same forward.
std::unordered_map<int64_t, bool> outliving_forward(const Trace& trace) {
  std::unordered_map<int64_t, bool> outlive;
  std::unordered_map<int64_t, int64_t> born_in;  // by block: number of its forward
  int64_t forward = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (i > 0 && trace.events[i - 1].phase != event.phase) ++forward;
    if (event.bytes > 0 && in(event.phase, PhaseKind::forward)) {
      born_in[event.block] = forward;
      outlive[event.block] = true;
    } else if (const auto at = born_in.find(event.block); at != born_in.end()) {
      outlive[event.block] = at->second != forward;
    }
  }
  return outlive;
}

std::string place_of(const Trace& trace, const Event& event) {
  std::string op = trace.ops[event.op];
  if (op.starts_with("aten::")) op = op.substr(6);
  const std::string phase = memory::phase_name(event.phase);
  return op.empty() ? phase : phase + ", " + op;
}

/// Plays events [0, end) and keeps what is alive.
class Player {
 public:
  Player(const Trace& trace, const Target& target)
      : trace_(trace), target_(target), memory_(target) {}

  /// Plays the trace back; returns false if the target refuses a request.
  [[nodiscard]] bool play(size_t index) {
    const Event& event = trace_.events[index];
    buffers_ = 0;
    for (; next_sum_ < trace_.sums.size() && trace_.sums[next_sum_].event <= index; ++next_sum_)
      if (!add_up(trace_.sums[next_sum_])) return false;
    for (; next_product_ < trace_.products.size() && trace_.products[next_product_].event <= index;
         ++next_product_)
      if (!multiply(trace_.products[next_product_])) return false;
    if (event.bytes > 0) {
      births_[event.block] = index;
    } else {
      births_.erase(event.block);
    }
    const bool admitted = memory_.apply(event);
    for (; next_mark_ < trace_.marks.size() && trace_.marks[next_mark_].event <= index + 1;
         ++next_mark_)
      memory_.take(trace_.marks[next_mark_].name);
    return admitted;
  }
  [[nodiscard]] CategoryBytes categories(const std::unordered_map<int64_t, bool>& outlive) const {
    CategoryBytes bytes;
    for (const auto& [block, birth] : births_) {
      const auto at = outlive.find(block);
      bytes[category_of(trace_, trace_.events[birth], at != outlive.end() && at->second)] +=
          memory_.size(block);
    }
    for (const int64_t block : held_) bytes[Category::workspace] += memory_.size(block);
    return bytes;
  }
  [[nodiscard]] const Allocator& memory() const { return memory_; }
  /// Returns the bytes that sums and products took before the last event, and gave back.
  [[nodiscard]] int64_t buffers() const { return buffers_; }

 private:
  bool add_up(const CardSum& sum) {
    const auto [parts, semaphores] = buffers_of(sum, target_.multiprocessors);
    if (parts == 0) return true;
    const int64_t before = memory_.allocated();
    if (!memory_.allocate(kParts, parts) || !memory_.allocate(kSemaphores, semaphores))
      return false;
    buffers_ = std::max(buffers_, memory_.allocated() - before);
    return memory_.apply({.block = kSemaphores}) && memory_.apply({.block = kParts});
  }

  /// Takes the workspaces of a product, which a library keeps for each thread, or gives back.
  bool multiply(const CardProduct& product) {
    const bool by_cublaslt = product.by == ProductBy::cublaslt ||
                             (product.by == ProductBy::either && target_.prefers_cublaslt);
    if (target_.keeps_workspaces) {
      const int64_t block = (product.backward ? kWorkspaceBackward : kWorkspace) -
                            (memory_.records() ? kOfRecords : 0);  // of another stream
      const bool own = by_cublaslt && target_.linear_workspace_bytes > 0;
      return ((own && !libtorch::kCublasLtTakesBoth) || keep(block, target_.workspace_bytes)) &&
             (!own || keep(block + 1, target_.linear_workspace_bytes));
    }
    const int64_t bytes = by_cublaslt ? target_.linear_workspace_bytes : target_.workspace_bytes;
    if (bytes == 0) return true;
    const int64_t before = memory_.allocated();
    if (!memory_.allocate(kWorkspace, bytes)) return false;
    buffers_ = std::max(buffers_, memory_.allocated() - before);
    return memory_.apply({.block = kWorkspace});
  }
  bool keep(int64_t block, int64_t bytes) {
    if (bytes == 0 || std::ranges::find(held_, block) != held_.end()) return true;
    if (!memory_.allocate(block, bytes)) return false;
    held_.push_back(block);
    return true;
  }

  // Numbers that no block of a trace has; that of cublasLt's workspace is one higher.
  static constexpr int64_t kWorkspace = -2, kWorkspaceBackward = -4, kParts = -5, kSemaphores = -6;
  static constexpr int64_t kOfRecords = 10;

  const Trace& trace_;
  const Target& target_;
  Allocator memory_;
  size_t next_sum_ = 0, next_product_ = 0, next_mark_ = 0;
  int64_t buffers_ = 0;
  std::vector<int64_t> held_;                   // the workspaces that are kept
  std::unordered_map<int64_t, size_t> births_;  // of the live blocks, by number: event
};

/// Counts the attempts in a row in which the allocator returned its cache.
class Pressure {
 public:
  explicit Pressure(const Trace& trace) : marks_(trace.marks) {}
  /// Takes the marks in front of an event; `retries` is how often the cache was returned till then.
  void look(size_t event, int64_t retries) {
    for (; next_ < marks_.size() && marks_[next_].event <= event; ++next_) {
      if (marks_[next_].name == kAttemptBegins) at_begin_ = retries;
      if (marks_[next_].name != kAttemptEnds) continue;
      in_a_row_ = retries > at_begin_ ? in_a_row_ + 1 : 0;
      reached_ = reached_ || in_a_row_ == 2;
    }
  }
  [[nodiscard]] bool reached() const { return reached_; }

 private:
  const std::vector<Mark>& marks_;
  size_t next_ = 0;
  int64_t at_begin_ = 0, in_a_row_ = 0;
  bool reached_ = false;
};

struct Moment {
  int64_t bytes = 0;
  size_t events = 0;    // how many had happened
  int64_t buffers = 0;  // of a sum, beside the blocks of the trace
};

/// Returns the live bytes by category after so many events.
CategoryBytes categories_after(const Trace& trace, const Target& target, size_t events,
                               const std::unordered_map<int64_t, bool>& outlive) {
  Target unlimited = target;
  unlimited.capacity_bytes = CudaCache::kUnlimited;
  Player player(trace, unlimited);
  for (size_t i = 0; i < events; ++i) (void)player.play(i);
  return player.categories(outlive);
}

/// Returns the estimate for a card that refuses nothing, which does not fit.
Estimate refused(const Trace& trace, Section section, Target target) {
  target.capacity_bytes = CudaCache::kUnlimited;
  Estimate whole = estimate(trace, section, target);
  whole.fits = false;
  return whole;
}

}  // namespace

Estimate estimate(const Trace& trace, Section section, const Target& target) {
  Estimate result;
  Player player(trace, target);
  Pressure pressure(trace);
  Moment peak{.bytes = 0, .events = section.begin};
  for (size_t i = 0; i < section.end; ++i) {
    pressure.look(i, player.memory().retries());
    const int64_t before = player.memory().allocated();
    const bool admitted = player.play(i);
    if (i > section.begin && before + player.buffers() > peak.bytes)
      peak = {before + player.buffers(), i, player.buffers()};
    if (target.caches && !admitted) return refused(trace, section, target);
    result.fits = result.fits && admitted;
    const int64_t allocated = player.memory().allocated();
    if (i + 1 == section.begin) {
      result.start_bytes = peak.bytes = allocated;
      result.reserved_bytes = player.memory().reserved();
    }
    if (i < section.begin) continue;
    result.reserved_bytes = std::max(result.reserved_bytes, player.memory().reserved());
    if (allocated > peak.bytes) peak = {allocated, i + 1};
  }
  pressure.look(section.end, player.memory().retries());
  result.returns_cache = pressure.reached();
  result.peak_bytes = peak.bytes - result.start_bytes;
  if (peak.events == section.begin) return result;
  result.at = place_of(trace, trace.events[peak.events - 1]);
  const auto outlive = outliving_forward(trace);
  result.categories = categories_after(trace, target, peak.events, outlive);
  result.categories[Category::workspace] += peak.buffers;
  const CategoryBytes before = categories_after(trace, target, section.begin, outlive);
  for (size_t i = 0; i < kCategories; ++i) result.categories.bytes[i] -= before.bytes[i];
  return result;
}

}  // namespace tare::plan
