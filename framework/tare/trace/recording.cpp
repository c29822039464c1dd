// Replaces the allocator of the meta device by one that records.
#include "tare/trace/recording.h"

#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/phase.h"
#include "tare/trace/dropout_state.h"

namespace tare::plan {
namespace {

constinit thread_local const c10::OperatorName* working_op = nullptr;

/// Identifies a block by its recording and number; it may outlive the recording.
struct Block {
  uint64_t recording = 0;
  int64_t number = 0;
};

/// The recording in progress.
struct RecordingState {
  std::mutex mutex;
  uint64_t recording = 0;  // its number
  bool open = false;
  bool paused = false;
  std::atomic<int64_t> capability = 0, multiprocessors = 0;  ///< of the Machine
  Trace trace;
  std::unordered_map<std::string, uint32_t> op_index;
  std::unordered_set<const c10::OperatorName*> called;
  int64_t births = 0;
  size_t stage = 0;                             // at work
  std::unordered_map<int64_t, size_t> born_in;  // of blocks that were born in a later stage
  c10::Allocator* replaced = nullptr;
  c10::DataPtr dropout_state;

  uint32_t op() {
    if (!working_op) return 0;
    const auto index = static_cast<uint32_t>(trace.ops.size());
    const auto [at, fresh] = op_index.emplace(working_op->name, index);
    if (fresh) trace.ops.push_back(working_op->name);
    return at->second;
  }
  [[nodiscard]] bool records() const { return open && !paused; }
  void add(int64_t block, int64_t bytes) {
    trace.events.push_back({block, bytes, memory::current_phase(), op()});
  }
};

RecordingState& state() {
  static Immortal<RecordingState> instance;  // static tensors may outlive it
  return *instance;
}

void release(void* context) {
  const std::unique_ptr<const Block> block(static_cast<const Block*>(context));
  if (!block) return;
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.open && s.recording == block->recording) s.add(block->number, 0);
}

// The data pointer stays null, as LibTorch's own meta allocator leaves it.
class MetaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::kMeta};
    RecordingState& s = state();
    const std::lock_guard lock(s.mutex);
    if (s.paused) return {nullptr, nullptr, &release, c10::kMeta};
    auto block = std::make_unique<Block>(Block{s.recording, s.births++});
    if (s.open) s.add(block->number, static_cast<int64_t>(bytes));
    if (s.stage > 0) s.born_in.emplace(block->number, s.stage);
    return {nullptr, block.release(), &release, c10::kMeta};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void*, const void*, size_t) const override {}
};

constexpr uint8_t kPriority = 1;  // above LibTorch's own, which has 0

void install() {
  static Immortal<MetaAllocator> instance;  // LibTorch may keep a pointer to it
  state().replaced = c10::GetAllocator(c10::kMeta);
  c10::SetAllocator(c10::kMeta, &*instance, kPriority);
}

void close(RecordingState& s) {
  s.open = false;
  s.capability = 0;
  c10::SetAllocator(c10::kMeta, s.replaced, kPriority);
}

}  // namespace

Recording::Recording(Machine machine) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.open)
    throw StateError("plan.trace", "while another trace is being recorded",
                     "record one after the other");
  s.trace = {};
  s.trace.ops = {""};
  s.op_index.clear();
  s.called.clear();
  s.births = 0;
  s.stage = 0;
  s.born_in.clear();
  s.paused = false;
  ++s.recording;
  s.open = true;
  s.capability = machine.capability;
  s.multiprocessors = machine.multiprocessors;
  install();
}

Recording::~Recording() {
  RecordingState& s = state();
  c10::DataPtr kept = std::move(s.dropout_state);  // released without the lock
  const std::lock_guard lock(s.mutex);
  if (s.open) close(s);
}

Trace Recording::finish() {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  close(s);
  for (const auto* name : s.called) s.trace.called.push_back(c10::toString(*name));
  std::ranges::sort(s.trace.called);
  return std::exchange(s.trace, {});
}

void pause_recording(bool on) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  s.paused = on;
}

void meta_mark(std::string name) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.open) s.trace.marks.push_back({std::move(name), s.trace.events.size()});
}

void note_product(ProductBy by) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.records() || s.capability == 0) return;
  s.trace.products.push_back({.event = s.trace.events.size(),
                              .by = by,
                              .backward = torch::autograd::get_current_node() != nullptr});
}

void note_sum(CardSum sum) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.records() || s.capability == 0) return;
  sum.event = s.trace.events.size();
  s.trace.sums.push_back(sum);
}

void meta_note(const Ledger& ledger) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.open) return;
  for (const LedgerEntry& entry : ledger.entries()) {
    if (!entry.device.is_meta()) continue;
    const auto* block = static_cast<const Block*>(entry.data);
    if (block && block->recording == s.recording)
      s.trace.categories.emplace(block->number, entry.category);
  }
}

void meta_note_stages(const Ledger& ledger,
                      const std::function<std::optional<size_t>(const LedgerEntry&)>& stage_of) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.open) return;
  for (const LedgerEntry& entry : ledger.entries()) {
    const auto* block = entry.device.is_meta() ? static_cast<const Block*>(entry.data) : nullptr;
    if (!block || block->recording != s.recording) continue;
    if (const auto part = stage_of(entry)) s.trace.stages[block->number] = *part;
  }
}

void meta_stage(size_t stage) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  s.stage = stage;
}

std::optional<size_t> meta_stage_of(const LedgerEntry& entry) {
  RecordingState& s = state();
  const std::lock_guard lock(s.mutex);
  const auto* block = entry.device.is_meta() ? static_cast<const Block*>(entry.data) : nullptr;
  if (!s.open || !block || block->recording != s.recording) return std::nullopt;
  if (const auto noted = s.trace.stages.find(block->number); noted != s.trace.stages.end())
    return noted->second;
  const auto born = s.born_in.find(block->number);
  return born == s.born_in.end() ? 0 : born->second;
}

c10::DataPtr& kept_dropout_state() { return state().dropout_state; }

bool for_card() { return state().capability.load(std::memory_order_relaxed) > 0; }

Machine recorded_machine() {
  const RecordingState& s = state();
  return {.capability = s.capability, .multiprocessors = s.multiprocessors};
}

WorkingOp::WorkingOp(const c10::OperatorName& name) : outermost_(working_op == nullptr) {
  if (!outermost_) return;
  RecordingState& s = state();
  {
    const std::lock_guard lock(s.mutex);
    if (s.records()) s.called.insert(&name);
  }
  working_op = &name;
}

WorkingOp::~WorkingOp() {
  if (outermost_) working_op = nullptr;
}

}  // namespace tare::plan
