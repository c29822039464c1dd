// Unwinds the stacks of allocations, and numbers the different ones.
#include "tare/memory/call_stack.h"

#include <c10/util/Exception.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>

#include "tare/base/immortal.h"

// torch::unwind::unwind() calls this with a vector of its own; with ours nothing is allocated.
extern "C" void unwind_entry(std::vector<void*>* addresses);

namespace tare::memory {
namespace {

using Addresses = std::span<void* const>;

constexpr size_t kMaxStacks = 1 << 16;
constexpr size_t kMaxFrames = 64;  // the outer ones of a deeper stack are cut off
constexpr size_t kSlots = 2 * kMaxStacks;

uint64_t hash_of(Addresses addresses) {
  uint64_t hash = addresses.size();
  for (const void* address : addresses)
    hash = (hash ^ reinterpret_cast<uintptr_t>(address)) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

/// Holds every different stack once, in an open-addressed table: looking up a known one allocates
/// nothing.
class StackTable {
 public:
  uint32_t number_of(Addresses addresses) {
    const uint64_t hash = hash_of(addresses);
    const std::lock_guard lock(mutex_);
    if (slots_.empty()) slots_.resize(kSlots);
    for (size_t i = hash % kSlots;; i = (i + 1) % kSlots) {
      Slot& slot = slots_[i];
      if (slot.number == 0) return add(slot, hash, addresses);
      if (slot.tag == static_cast<uint32_t>(hash) && same(stacks_[slot.number - 1], addresses))
        return slot.number;
    }
  }

  std::vector<void*> of(uint32_t number) {
    const std::lock_guard lock(mutex_);
    if (number == 0 || number > stacks_.size()) return {};
    const Stack& stack = stacks_[number - 1];
    const Addresses addresses(stack.addresses.get(), stack.depth);
    return std::vector<void*>(addresses.begin(), addresses.end());
  }

 private:
  struct Slot {
    uint32_t tag = 0;     // the low half of the hash
    uint32_t number = 0;  // 0: free
  };
  struct Stack {
    std::unique_ptr<void*[]> addresses;
    size_t depth = 0;
  };

  static bool same(const Stack& stack, Addresses addresses) {
    return stack.depth == addresses.size() &&
           std::memcmp(stack.addresses.get(), addresses.data(), addresses.size_bytes()) == 0;
  }

  uint32_t add(Slot& slot, uint64_t hash, Addresses addresses) {
    if (stacks_.size() == kMaxStacks) return 0;
    Stack stack{std::make_unique<void*[]>(addresses.size()), addresses.size()};
    std::memcpy(stack.addresses.get(), addresses.data(), addresses.size_bytes());
    stacks_.push_back(std::move(stack));
    slot = {static_cast<uint32_t>(hash), static_cast<uint32_t>(stacks_.size())};
    return slot.number;
  }

  std::mutex mutex_;
  std::vector<Slot> slots_;  // half of them at most are in use
  std::vector<Stack> stacks_;
};

StackTable& stacks() {
  static Immortal<StackTable> table;
  return *table;
}

/// The unwinder warns of code it cannot read; the stack then ends there.
class Quiet final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

/// The memory in which this thread's stack is gathered, so that only its first one allocates.
struct Scratch {
  Scratch() { addresses.reserve(4 * kMaxFrames); }
  ~Scratch() { gone = true; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::vector<void*> addresses;
  static inline thread_local constinit bool gone = false;  // the thread is ending
};

}  // namespace

constinit std::atomic<int> CallSites::open_scopes{0};

CallSites::CallSites() noexcept { open_scopes.fetch_add(1, std::memory_order_relaxed); }

CallSites::~CallSites() { open_scopes.fetch_sub(1, std::memory_order_relaxed); }

uint32_t gather_stack() noexcept {
  if (Scratch::gone) return 0;
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  try {
    static thread_local Scratch scratch;
    auto& addresses = scratch.addresses;
    addresses.clear();
    unwind_entry(&addresses);
    return stacks().number_of(Addresses(addresses).first(std::min(addresses.size(), kMaxFrames)));
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

std::vector<void*> addresses_of(uint32_t stack) { return stacks().of(stack); }

}  // namespace tare::memory
