// The other processes of the machine: how much memory they hold, whose they are and what they run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tare::runtime {

/// Describes a process of the machine and its resident set, which includes pages that it shares.
struct ProcessMemory {
  int64_t id = 0;              ///< of the process
  int64_t resident_bytes = 0;  ///< pages of it that are in memory
};

/// Returns the processes with the largest resident sets, largest first, at most `count`; of those
/// that /proc shows. `root` replaces / for tests.
[[nodiscard]] std::vector<ProcessMemory> largest_processes(size_t count,
                                                           const std::filesystem::path& root = "/");

/// Says whose a process is and what it runs. Both are text of others: print them by printable().
struct ProcessOwner {
  std::string user{};     ///< name, or number where it has none; empty: there is no such process
  std::string command{};  ///< its arguments with spaces between; a kernel thread's name in brackets
};

/// Returns the owner of a process; `root` replaces / for tests.
[[nodiscard]] ProcessOwner owner_of(int64_t process, const std::filesystem::path& root = "/");

}  // namespace tare::runtime
