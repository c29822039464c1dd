#include "tare/memory/call_stack.h"

#include <c10/util/Exception.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <atomic>
#include <mutex>
#include <new>
#include <unordered_map>

#include "tare/base/immortal.h"

namespace tare::memory {
namespace {

using Addresses = std::vector<void*>;

constexpr size_t kMaxStacks = 1 << 16;
constexpr size_t kMaxFrames = 64;  // the outer ones of a deeper stack are cut off

constinit std::atomic<int> open_scopes{0};

struct Hash {
  size_t operator()(const Addresses& addresses) const noexcept {
    uint64_t hash = 0;
    for (const void* address : addresses)
      hash = (hash ^ reinterpret_cast<uintptr_t>(address)) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(hash ^ (hash >> 32));
  }
};

class StackTable {
 public:
  uint32_t number_of(Addresses addresses) {
    const std::lock_guard lock(mutex_);
    const auto known = numbers_.find(addresses);
    if (known != numbers_.end()) return known->second;
    if (stacks_.size() == kMaxStacks) return 0;
    const auto number = static_cast<uint32_t>(stacks_.size() + 1);
    const auto [added, is_new] = numbers_.emplace(std::move(addresses), number);
    stacks_.push_back(&added->first);
    return number;
  }

  Addresses of(uint32_t number) {
    const std::lock_guard lock(mutex_);
    return number == 0 || number > stacks_.size() ? Addresses{} : *stacks_[number - 1];
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Addresses, uint32_t, Hash> numbers_;
  std::vector<const Addresses*> stacks_;
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

}  // namespace

CallSites::CallSites() noexcept { open_scopes.fetch_add(1, std::memory_order_relaxed); }

CallSites::~CallSites() { open_scopes.fetch_sub(1, std::memory_order_relaxed); }

uint32_t capture_stack() noexcept {
  if (open_scopes.load(std::memory_order_relaxed) == 0) [[likely]]
    return 0;
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  try {
    Addresses addresses = torch::unwind::unwind();
    if (addresses.size() > kMaxFrames) addresses.resize(kMaxFrames);
    return stacks().number_of(std::move(addresses));
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

std::vector<void*> addresses_of(uint32_t stack) { return stacks().of(stack); }

}  // namespace tare::memory
