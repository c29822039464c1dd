// The limit of this process's resident set, which the host allocator checks before it gives a
// block. Internal: use set_process_memory_limit().
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tare::memory::resident_limit {

inline constinit std::atomic<bool> is_set{false};  ///< whether a limit is set; for in_force()
/// Whether a limit is set. Thread-safe.
[[nodiscard]] inline bool in_force() noexcept { return is_set.load(std::memory_order_relaxed); }

/// Sets the limit; `live_bytes` are those of tensors that are alive now.
void set(int64_t bytes, int64_t live_bytes);
void clear();  ///< removes the limit
/// Returns the limit that was set last.
[[nodiscard]] int64_t bytes();

/// Whether a block of so many bytes may be allocated with `live_bytes` of tensors alive.
[[nodiscard]] bool admits(int64_t bytes, int64_t live_bytes);
/// Returns the end of a refusal's message: what to do, with `live_bytes` of tensors alive.
[[nodiscard]] std::string advice(int64_t live_bytes);

}  // namespace tare::memory::resident_limit
