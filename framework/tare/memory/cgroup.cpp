// Reads the limits of control groups from the kernel's files.
#include "tare/memory/cgroup.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::memory {
namespace fs = std::filesystem;
namespace {

enum class Version { one, two };

struct Group {
  Version version;
  fs::path folder;
};

bool names(std::string_view list, std::string_view controller) {
  std::istringstream fields{std::string(list)};
  for (std::string field; std::getline(fields, field, ',');)
    if (field == controller) return true;
  return false;
}

void add_with_parents(std::vector<Group>& groups, Version version, const fs::path& mount,
                      fs::path path) {
  for (;; path = path.parent_path()) {
    groups.push_back({version, mount / path.relative_path()});
    if (!path.has_relative_path()) return;
  }
}

/// Returns the groups that bound `controller` for this process, from its own up to the root. A
/// container may show paths of the host that are not there: those folders are simply not found.
std::vector<Group> groups_of(const fs::path& root, const std::string& controller) {
  std::vector<Group> groups;
  const fs::path mount = root / "sys/fs/cgroup";
  std::istringstream lines(read_system_file(root / "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/path" or "0::/path"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const fs::path path = line.substr(second + 1);
    if (controllers.empty()) add_with_parents(groups, Version::two, mount, path);
    if (names(controllers, controller))
      add_with_parents(groups, Version::one, mount / controller, path);
  }
  return groups;
}

/// The first two numbers of a file; "max" and what is missing are unset.
struct TwoNumbers {
  std::optional<int64_t> first, second;
};

std::optional<int64_t> number(const std::string& text) {
  int64_t value = 0;
  return std::istringstream(text) >> value ? std::optional(value) : std::nullopt;
}

TwoNumbers two_numbers(const fs::path& path) {
  std::istringstream text(read_system_file(path).value_or(""));
  std::string first, second;
  text >> first >> second;
  return {number(first), number(second)};
}

int64_t field_of(const fs::path& path, std::string_view name) {
  std::istringstream lines(read_system_file(path).value_or(""));
  int64_t value = 0;
  for (std::string key; lines >> key >> value;)
    if (key == name) return value;
  return 0;
}

std::optional<double> processors(const Group& group) {
  auto [quota, period] = two_numbers(group.folder / "cpu.max");
  if (group.version == Version::one) {
    quota = two_numbers(group.folder / "cpu.cfs_quota_us").first;
    period = two_numbers(group.folder / "cpu.cfs_period_us").first;
  }
  if (quota.value_or(0) <= 0 || period.value_or(0) <= 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<CgroupMemory> memory_of(const Group& group) {
  const bool two = group.version == Version::two;
  const auto limit =
      two_numbers(group.folder / (two ? "memory.max" : "memory.limit_in_bytes")).first;
  if (!limit) return {};
  const auto used =
      two_numbers(group.folder / (two ? "memory.current" : "memory.usage_in_bytes")).first;
  const auto droppable =
      field_of(group.folder / "memory.stat", two ? "inactive_file" : "total_inactive_file");
  // The two files are not read at the same moment, and the second one lags.
  return CgroupMemory{*limit, std::max<int64_t>(0, used.value_or(0) - droppable)};
}

}  // namespace

std::optional<std::string> read_system_file(const fs::path& path) {
  try {
    return io::read_text(path);
  } catch (const IoError&) {
    return {};
  }
}

std::optional<double> cgroup_processors(const fs::path& root) {
  std::optional<double> least;
  for (const auto& group : groups_of(root, "cpu"))
    if (const auto quota = processors(group); quota && (!least || *quota < *least)) least = quota;
  return least;
}

std::optional<CgroupMemory> cgroup_memory(const fs::path& root) {
  std::optional<CgroupMemory> least;
  const auto left_bytes = [](const CgroupMemory& memory) {
    return memory.limit_bytes - memory.used_bytes;
  };
  for (const auto& group : groups_of(root, "memory"))
    if (const auto memory = memory_of(group);
        memory && (!least || left_bytes(*memory) < left_bytes(*least)))
      least = memory;
  return least;
}

}  // namespace tare::memory
