// Call stacks of allocations: gathered while a CallSites is in scope, each different one kept once.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tare::memory {

/// Gives every block of every device, while in scope, the number of the call stack that allocated
/// the block. Scopes may nest and overlap; they are process-wide. Outside, an allocation pays one
/// branch.
class CallSites {
 public:
  CallSites() noexcept;
  ~CallSites();
  CallSites(const CallSites&) = delete;
  CallSites& operator=(const CallSites&) = delete;

  /// Whether any scope is open, on any thread.
  [[nodiscard]] static bool in_scope() noexcept {
    return open_scopes.load(std::memory_order_relaxed) > 0;
  }

 private:
  static std::atomic<int> open_scopes;
};

/// Returns the number of the calling thread's stack, in scope or not. For capture_stack().
[[nodiscard]] uint32_t gather_stack() noexcept;

/// Returns the number of the calling thread's stack; the same stack has the same number until the
/// process ends. 0 outside CallSites, and for a new stack when 65,536 are known (about 20 MiB) or
/// memory is out. Allocates no tensor, prints nothing. Thread-safe.
[[nodiscard]] inline uint32_t capture_stack() noexcept {
  return CallSites::in_scope() ? gather_stack() : 0;
}

/// Returns the return addresses of a stack, innermost first; empty for 0 and unknown numbers.
/// Thread-safe.
[[nodiscard]] std::vector<void*> addresses_of(uint32_t stack);

}  // namespace tare::memory
