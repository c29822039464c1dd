// Reads the operating system's figures of this process and of the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tare/memory/usage.h"

namespace tare::memory {

/// Returns the resident set of this process in bytes, including shared libraries and mapped files;
/// 0 if it cannot be read.
[[nodiscard]] int64_t resident_bytes();
/// Returns the resident bytes of the process with this folder below /proc; 0 if it has ended.
[[nodiscard]] int64_t resident_bytes_of(const std::filesystem::path& folder);
/// Returns the machine's memory, or the cgroup's limit if that is smaller; zeros if it cannot be
/// read. `root` replaces / for tests.
[[nodiscard]] MemoryInfo machine_memory(const std::filesystem::path& root = "/");
/// Returns the processor's model name, or "CPU".
[[nodiscard]] std::string processor_name();
/// Returns the share of time in which the machine's processors were busy since the previous call
/// (the first: since boot), 0 to 1; unset if it cannot be read.
[[nodiscard]] std::optional<double> processor_utilisation();

}  // namespace tare::memory
