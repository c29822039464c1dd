// Sets the limits of the process: its resident set, and on request its address space.
#include "tare/memory/process_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <sstream>
#include <string>

#include "tare/base/error.h"
#include "tare/memory/cgroup.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/machine.h"
#include "tare/memory/resident_limit.h"

namespace tare::memory {
namespace {

constexpr const char* kWhere = "memory.set_process_memory_limit";

int64_t address_space_bytes() {
  int64_t pages = 0;
  std::istringstream(read_system_file("/proc/self/statm").value_or("")) >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// The soft limit of the address space, and what it was before.
class AddressSpace {
 public:
  void set(int64_t more_bytes) {
    restore();
    rlimit now{};
    check(getrlimit(RLIMIT_AS, &now));
    before_ = now.rlim_cur;
    now.rlim_cur = std::min(static_cast<rlim_t>(address_space_bytes() + more_bytes), now.rlim_max);
    check(setrlimit(RLIMIT_AS, &now));
    changed_ = true;
  }
  void restore() {
    if (!changed_) return;
    rlimit now{};
    check(getrlimit(RLIMIT_AS, &now));
    now.rlim_cur = before_;
    check(setrlimit(RLIMIT_AS, &now));
    changed_ = false;
  }

 private:
  static void check(int result) {
    if (result != 0) throw IoError(kWhere, "RLIMIT_AS", errno);
  }

  bool changed_ = false;
  rlim_t before_ = 0;
};

std::mutex setting;
AddressSpace address_space;

}  // namespace

void set_process_memory_limit(std::optional<int64_t> bytes, const ProcessLimitOptions& options) {
  if (bytes && *bytes < 1)
    throw ConfigError(kWhere, "the limit must be >= 1 byte, got " + std::to_string(*bytes));
  const std::lock_guard lock(setting);
  if (bytes) {
    resident_limit::set(*bytes, host_allocator::counters().live_bytes);
  } else {
    resident_limit::clear();
  }
  if (bytes && options.address_space) {
    address_space.set(std::max<int64_t>(0, *bytes - resident_bytes()));
  } else {
    address_space.restore();
  }
}

std::optional<int64_t> process_memory_limit() {
  return resident_limit::in_force() ? std::optional(resident_limit::bytes()) : std::nullopt;
}

}  // namespace tare::memory
