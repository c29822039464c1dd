// Reads the folders of processes below /proc.
#include "tare/runtime/process.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <sstream>

#include "tare/memory/cgroup.h"
#include "tare/memory/machine.h"

namespace tare::runtime {
namespace fs = std::filesystem;
using memory::read_system_file;
namespace {

std::optional<int64_t> process_number(const std::string& name) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return id;
}

/// Returns the user that "Uid:" of /proc/PID/status names.
std::string user_of(const std::string& status) {
  const auto at = status.find("\nUid:");
  uid_t number = 0;
  if (at == status.npos || !(std::istringstream(status.substr(at + 5)) >> number)) return "?";
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  if (getpwuid_r(number, &entry, text.data(), text.size(), &found) == 0 && found)
    return found->pw_name;
  return std::to_string(number);
}

}  // namespace

std::vector<ProcessMemory> largest_processes(size_t count, const fs::path& root) {
  std::vector<ProcessMemory> all;
  std::error_code error;
  for (fs::directory_iterator entry(root / "proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto id = process_number(entry->path().filename().string());
    if (!id) continue;
    const int64_t bytes = memory::resident_bytes_of(entry->path());
    if (bytes > 0) all.push_back({*id, bytes});
  }
  const auto shown = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::ranges::partial_sort(all, shown, [](const ProcessMemory& a, const ProcessMemory& b) {
    return a.resident_bytes != b.resident_bytes ? a.resident_bytes > b.resident_bytes : a.id < b.id;
  });
  all.erase(shown, all.end());
  return all;
}

ProcessOwner owner_of(int64_t process, const fs::path& root) {
  const fs::path folder = root / "proc" / std::to_string(process);
  const auto status = read_system_file(folder / "status");
  if (!status) return {};
  ProcessOwner owner{.user = user_of(*status),
                     .command = read_system_file(folder / "cmdline").value_or("")};
  while (owner.command.ends_with('\0')) owner.command.pop_back();
  std::ranges::replace(owner.command, '\0', ' ');
  if (owner.command.empty()) {
    std::string name = read_system_file(folder / "comm").value_or("");
    if (name.ends_with('\n')) name.pop_back();
    owner.command = '[' + name + ']';
  }
  return owner;
}

}  // namespace tare::runtime
