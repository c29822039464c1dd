// What the operating system reports about this process and the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/usage.h"

namespace tare::memory {

/// Resident set of this process in bytes, including shared libraries and mapped files; 0 if it
/// cannot be read.
[[nodiscard]] int64_t resident_bytes();
/// The machine's memory, or the cgroup's limit if that is smaller; zeros if it cannot be read.
/// `root` replaces / for tests.
[[nodiscard]] MemoryInfo machine_memory(const std::filesystem::path& root = "/");
/// The processor's model name, or "CPU".
[[nodiscard]] std::string processor_name();
/// Share of time in which the machine's processors were busy since the previous call (the first:
/// since boot), 0 to 1; unset if it cannot be read.
[[nodiscard]] std::optional<double> processor_utilisation();

/// A process of the machine and its resident set, which includes pages that it shares.
struct ProcessMemory {
  int64_t id = 0;
  int64_t resident_bytes = 0;
};

/// The processes with the largest resident sets, largest first, at most `count`; of those that
/// /proc shows. `root` replaces / for tests.
[[nodiscard]] std::vector<ProcessMemory> largest_processes(size_t count,
                                                           const std::filesystem::path& root = "/");

/// Whose a process is and what it runs. Both are text of others: print them by printable().
struct ProcessOwner {
  std::string user{};     ///< name, or number where it has none; empty: there is no such process
  std::string command{};  ///< its arguments with spaces between; a kernel thread's name in brackets
};

/// `root` replaces / for tests.
[[nodiscard]] ProcessOwner owner_of(int64_t process, const std::filesystem::path& root = "/");

/// Processors that this process may use: the smaller of its affinity and its cgroup's quota
/// (rounded up, version 1 and 2), at least 1.
[[nodiscard]] int usable_processors(const std::filesystem::path& root = "/");

}  // namespace tare::memory
