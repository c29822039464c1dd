// Reads memory, processors and load of the machine from /proc.
#include "tare/memory/machine.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <sstream>

#include "tare/memory/cgroup.h"

namespace tare::memory {
namespace fs = std::filesystem;
namespace {

/// Returns the value of "Key:   123 kB" in bytes, 0 when it is not there.
int64_t meminfo_bytes(const std::string& text, const std::string& key) {
  const auto at = text.find(key + ":");
  int64_t kilobytes = 0;
  if (at != text.npos) std::istringstream(text.substr(at + key.size() + 1)) >> kilobytes;
  return kilobytes << 10;
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

int64_t resident_bytes_of(const fs::path& folder) {
  std::istringstream text(read_system_file(folder / "statm").value_or(""));
  int64_t all = 0, resident = 0;
  return text >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

MemoryInfo machine_memory(const fs::path& root) {
  const auto text = read_system_file(root / "proc/meminfo").value_or("");
  MemoryInfo info{meminfo_bytes(text, "MemTotal"), meminfo_bytes(text, "MemAvailable")};
  if (const auto group = cgroup_memory(root)) {
    info.total_bytes = std::min(info.total_bytes, group->limit_bytes);
    const int64_t left_bytes = std::max<int64_t>(0, group->limit_bytes - group->used_bytes);
    info.available_bytes = std::min(info.available_bytes, left_bytes);
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

}  // namespace tare::memory
