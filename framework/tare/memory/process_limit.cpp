#include "tare/memory/process_limit.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/cgroup.h"
#include "tare/memory/event_ring.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/process.h"

namespace tare::memory {
namespace {

constexpr const char* kWhere = "memory.set_process_memory_limit";
constexpr int64_t kReadingAgeNs = 1'000'000;

int64_t address_space_bytes() {
  int64_t pages = 0;
  std::istringstream(read_system_file("/proc/self/statm").value_or("")) >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

class Limit {
 public:
  void set(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ = bytes;
    read();
    beside_ = std::max<int64_t>(0, resident_ - host_allocator::counters().live_bytes);
  }

  [[nodiscard]] int64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

  /// A fresh block is not resident before it is written to, so what lives counts in any case.
  bool admits(int64_t bytes, int64_t live_bytes) {
    const std::lock_guard lock(mutex_);
    const auto fits = [&] {
      return bytes <= bytes_ - std::max(resident_ + since_, beside_ + live_bytes);
    };
    bool admitted = now_ns() - read_at_ns_ < kReadingAgeNs && fits();
    for (const bool trim : {false, true}) {
      if (admitted) break;
      if (trim) malloc_trim(0);
      read();
      admitted = fits();
    }
    if (admitted) since_ += bytes;
    return admitted;
  }

 private:
  void read() {
    resident_ = resident_bytes();
    since_ = 0;
    read_at_ns_ = now_ns();
  }

  std::mutex mutex_;
  int64_t bytes_ = 0;
  int64_t resident_ = 0;  // when last read
  int64_t since_ = 0;     // taken by tensors since then
  int64_t beside_ = 0;    // not of tensors, when the limit was set
  int64_t read_at_ns_ = 0;
};

Limit& limit() {
  static Immortal<Limit> instance;
  return *instance;
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
  if (bytes) limit().set(*bytes);
  process_limit::is_set = bytes.has_value();
  if (bytes && options.address_space) {
    address_space.set(std::max<int64_t>(0, *bytes - resident_bytes()));
  } else {
    address_space.restore();
  }
}

std::optional<int64_t> process_memory_limit() {
  return process_limit::in_force() ? std::optional(limit().bytes()) : std::nullopt;
}

namespace process_limit {

bool admits(int64_t bytes, int64_t live_bytes) { return limit().admits(bytes, live_bytes); }

std::string advice() {
  return "the process holds " + format_bytes(resident_bytes()) + " of its limit of " +
         format_bytes(limit().bytes()) + "; use a smaller batch or raise the limit";
}

}  // namespace process_limit
}  // namespace tare::memory
