// Replaces the allocator of the meta device by one that records.
#include "tare/trace/recording.h"

#include <c10/core/Allocator.h>

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

namespace tare::plan {
namespace {

constinit thread_local const c10::OperatorName* working_op = nullptr;

/// What a block carries; it may outlive its recording.
struct Block {
  uint64_t recording = 0;
  int64_t number = 0;
};

/// The recording in progress.
struct Book {
  std::mutex mutex;
  uint64_t recording = 0;  // its number
  bool open = false;
  std::atomic<bool> for_card = false;
  Trace trace;
  std::unordered_map<std::string, uint32_t> op_index;
  std::unordered_set<const c10::OperatorName*> called;
  int64_t births = 0;
  c10::Allocator* replaced = nullptr;

  uint32_t op() {
    if (!working_op) return 0;
    const auto index = static_cast<uint32_t>(trace.ops.size());
    const auto [at, fresh] = op_index.emplace(working_op->name, index);
    if (fresh) trace.ops.push_back(working_op->name);
    return at->second;
  }
  void add(int64_t block, int64_t bytes) {
    trace.events.push_back({block, bytes, memory::current_phase(), op()});
  }
};

Book& book() {
  static Immortal<Book> instance;  // static tensors may outlive it
  return *instance;
}

void release(void* context) {
  const std::unique_ptr<const Block> block(static_cast<const Block*>(context));
  if (!block) return;
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  if (b.open && b.recording == block->recording) b.add(block->number, 0);
}

// The data pointer stays null, as LibTorch's own meta allocator leaves it.
class MetaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::kMeta};
    Book& b = book();
    const std::lock_guard lock(b.mutex);
    auto block = std::make_unique<Block>(Block{b.recording, b.births++});
    if (b.open) b.add(block->number, static_cast<int64_t>(bytes));
    return {nullptr, block.release(), &release, c10::kMeta};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void*, const void*, size_t) const override {}
};

constexpr uint8_t kPriority = 1;  // above LibTorch's own, which has 0

void install() {
  static Immortal<MetaAllocator> instance;  // LibTorch may keep a pointer to it
  book().replaced = c10::GetAllocator(c10::kMeta);
  c10::SetAllocator(c10::kMeta, &*instance, kPriority);
}

void close(Book& b) {
  b.open = false;
  b.for_card = false;
  c10::SetAllocator(c10::kMeta, b.replaced, kPriority);
}

}  // namespace

Recording::Recording(Machine machine) {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  if (b.open)
    throw StateError("plan.trace", "while another trace is being recorded",
                     "record one after the other");
  b.trace = {};
  b.trace.ops = {""};
  b.op_index.clear();
  b.called.clear();
  b.births = 0;
  ++b.recording;
  b.open = true;
  b.for_card = machine == Machine::card;
  install();
}

Recording::~Recording() {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  if (b.open) close(b);
}

Trace Recording::finish() {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  close(b);
  for (const auto* name : b.called) b.trace.called.push_back(c10::toString(*name));
  std::ranges::sort(b.trace.called);
  return std::exchange(b.trace, {});
}

void meta_mark(std::string name) {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  if (b.open) b.trace.marks.push_back({std::move(name), b.trace.events.size()});
}

void meta_note(const Ledger& ledger) {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  if (!b.open) return;
  for (const LedgerEntry& entry : ledger.entries()) {
    if (!entry.device.is_meta()) continue;
    const auto* block = static_cast<const Block*>(entry.data);
    if (block->recording == b.recording) b.trace.categories.emplace(block->number, entry.category);
  }
}

bool for_card() { return book().for_card.load(std::memory_order_relaxed); }

WorkingOp::WorkingOp(const c10::OperatorName& name) : outermost_(working_op == nullptr) {
  if (!outermost_) return;
  Book& b = book();
  {
    const std::lock_guard lock(b.mutex);
    if (b.open) b.called.insert(&name);
  }
  working_op = &name;
}

WorkingOp::~WorkingOp() {
  if (outermost_) working_op = nullptr;
}

}  // namespace tare::plan
