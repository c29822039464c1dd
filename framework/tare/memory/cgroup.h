// The bounds that a container or a batch system puts on this process, from control groups version 1
// and 2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tare::memory {

/// A file of /proc or /sys as text; unset where it cannot be read.
[[nodiscard]] std::optional<std::string> read_system_file(const std::filesystem::path& path);

/// The smallest quota of this process's group and the groups above it, in processors; unset for
/// none. `root` stands before /proc and /sys, for tests.
[[nodiscard]] std::optional<double> cgroup_processors(const std::filesystem::path& root);

struct CgroupMemory {
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;  ///< without file pages that the kernel can drop
};

/// The group, of this process's and those above, with the least room left; unset when none has a
/// limit.
[[nodiscard]] std::optional<CgroupMemory> cgroup_memory(const std::filesystem::path& root);

}  // namespace tare::memory
