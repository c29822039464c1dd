#include "tare/memory/process.h"

#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <mutex>
#include <sstream>
#include <thread>

#include "tare/memory/cgroup.h"

namespace tare::memory {
namespace fs = std::filesystem;
namespace {

int affinity_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more processors than the set holds.
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// The value of "Key:   123 kB" in bytes, 0 when it is not there.
int64_t meminfo_bytes(const std::string& text, const std::string& key) {
  const auto at = text.find(key + ":");
  int64_t kilobytes = 0;
  if (at != text.npos) std::istringstream(text.substr(at + key.size() + 1)) >> kilobytes;
  return kilobytes << 10;
}

/// Of the process with this folder below /proc; 0 if it has ended.
int64_t resident_bytes_of(const fs::path& folder) {
  std::istringstream text(read_system_file(folder / "statm").value_or(""));
  int64_t all = 0, resident = 0;
  return text >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

std::optional<int64_t> process_number(const std::string& name) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return id;
}

/// The user that "Uid:" of /proc/PID/status names.
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

struct ProcessorTicks {
  int64_t busy = 0, all = 0;
};

std::optional<ProcessorTicks> read_ticks() {
  std::istringstream text(read_system_file("/proc/stat").value_or(""));
  std::string label;
  int64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
  if (!(text >> label >> user >> nice >> system >> idle >> waiting)) return {};
  const int64_t busy = user + nice + system;
  return ProcessorTicks{busy, busy + idle + waiting};
}

}  // namespace

int64_t resident_bytes() { return resident_bytes_of("/proc/self"); }

MemoryInfo machine_memory(const fs::path& root) {
  const auto text = read_system_file(root / "proc/meminfo").value_or("");
  MemoryInfo info{meminfo_bytes(text, "MemTotal"), meminfo_bytes(text, "MemAvailable")};
  if (const auto group = cgroup_memory(root)) {
    info.total_bytes = std::min(info.total_bytes, group->limit_bytes);
    const int64_t room = std::max<int64_t>(0, group->limit_bytes - group->used_bytes);
    info.available_bytes = std::min(info.available_bytes, room);
  }
  return info;
}

std::string processor_name() {
  std::istringstream lines(read_system_file("/proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("model name")) continue;
    const auto at = line.find(": ");
    if (at != line.npos) return line.substr(at + 2);
  }
  return "CPU";
}

std::optional<double> processor_utilisation() {
  static std::mutex mutex;
  static ProcessorTicks before;
  const std::lock_guard lock(mutex);
  const auto now = read_ticks();
  if (!now || now->all == before.all) return {};
  const double share =
      static_cast<double>(now->busy - before.busy) / static_cast<double>(now->all - before.all);
  before = *now;
  return std::clamp(share, 0.0, 1.0);
}

std::vector<ProcessMemory> largest_processes(size_t count, const fs::path& root) {
  std::vector<ProcessMemory> all;
  std::error_code error;
  for (fs::directory_iterator entry(root / "proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto id = process_number(entry->path().filename().string());
    if (!id) continue;
    const int64_t bytes = resident_bytes_of(entry->path());
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

int usable_processors(const fs::path& root) {
  const int allowed = std::max(1, affinity_processors());
  const auto quota = cgroup_processors(root);
  if (!quota) return allowed;
  return std::clamp(static_cast<int>(std::ceil(*quota)), 1, allowed);
}

}  // namespace tare::memory
