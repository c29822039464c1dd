// A limit of everything that the process holds in the host's memory, tensors or not.
#pragma once

#include <cstdint>
#include <optional>

namespace tare::memory {

/// Extends the limit of a process to its address space, if wanted.
struct ProcessLimitOptions {
  /// Whether to limit the address space too (RLIMIT_AS) by what the process may still take, so that
  /// a std::vector that does not fit throws std::bad_alloc, which adapt and the Learner take for
  /// out-of-memory. Libraries that do not expect a refusal, such as oneDNN, may then end the
  /// process by a signal.
  bool address_space = false;
};

/// Limits the host's memory of this process: an allocation of a tensor that would take the resident
/// set above it throws OutOfMemory and changes nothing, after freed memory was given back to the
/// system. So a training is refused memory before the machine swaps. std containers, libraries and
/// mapped files count from the next tensor on; they are refused nothing themselves, but see
/// ProcessLimitOptions. The resident set is read at most every millisecond; what tensors have taken
/// since is added to it. Also limits DeviceBackend::memory_info() of the host, by which plans and
/// adapt go. Unset: no limit. Thread-safe. Throws ConfigError for a limit below 1 byte, IoError
/// where the system refuses to limit the address space.
void set_process_memory_limit(std::optional<int64_t> bytes,
                              const ProcessLimitOptions& options = {});
/// Returns the limit that was set last; unset: none.
[[nodiscard]] std::optional<int64_t> process_memory_limit();

}  // namespace tare::memory
