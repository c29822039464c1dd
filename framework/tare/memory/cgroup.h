// Limits that a container or batch system sets for this process: control groups, versions 1 and 2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tare::memory {

/// Returns a file of /proc or /sys as text; unset if it cannot be read.
[[nodiscard]] std::optional<std::string> read_system_file(const std::filesystem::path& path);

/// Returns the smallest CPU quota of this process's group and its parents, in processors; unset: no
/// quota. `root` replaces / for tests.
[[nodiscard]] std::optional<double> cgroup_processors(const std::filesystem::path& root);

/// Reports a control group's limit of memory and what of it is used.
struct CgroupMemory {
  int64_t limit_bytes = 0;  ///< the smallest of the group and its parents
  int64_t used_bytes = 0;   ///< without file pages that the kernel can drop
};

/// Returns, of this process's group and its parents, the one with the least memory left; unset: no
/// limit. `root` replaces / for tests.
[[nodiscard]] std::optional<CgroupMemory> cgroup_memory(const std::filesystem::path& root);

}  // namespace tare::memory
