// What the operating system says about this process and the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tare/memory/backend.h"

namespace tare::memory {

/// Resident set of this process in bytes, shared libraries and mapped files included; 0 where it
/// cannot be read.
[[nodiscard]] int64_t resident_bytes();
/// The machine's memory, cut to the cgroup's bound where there is one; zeros where it cannot be
/// read. `root` stands before /proc and /sys, for tests.
[[nodiscard]] MemoryInfo machine_memory(const std::filesystem::path& root = "/");
/// The processor's model name, or "CPU".
[[nodiscard]] std::string processor_name();
/// Share of the time that the machine's processors were busy since the call before (since boot at
/// the first), 0 to 1.
[[nodiscard]] std::optional<double> processor_utilisation();

/// Processors that this process may use: the smaller of its affinity and its cgroup's quota
/// (rounded up, version 1 and 2), at least 1.
[[nodiscard]] int usable_processors(const std::filesystem::path& root = "/");

}  // namespace tare::memory
