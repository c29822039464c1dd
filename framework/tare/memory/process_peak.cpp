// Measures the peak of the resident set, which the kernel keeps.
#include "tare/memory/process_peak.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <string>

#include "tare/base/immortal.h"
#include "tare/memory/cgroup.h"
#include "tare/memory/machine.h"

namespace tare::memory {
namespace {

/// Returns the kernel's peak of the resident set; 0 if it cannot be read.
int64_t kernel_peak() {
  const std::string text = read_system_file("/proc/self/status").value_or("");
  const auto at = text.find("VmHWM:");
  int64_t kilobytes = 0;
  if (at != text.npos) std::istringstream(text.substr(at + 6)) >> kilobytes;
  return kilobytes << 10;
}

void start_again() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto written = ::write(file, "5", 1);
  ::close(file);
}

struct Scopes {
  std::mutex mutex;
  OpenPeaks peaks;

  void set_boundary() {
    peaks.fold(std::max(kernel_peak(), resident_bytes()));
    start_again();
  }
};

Scopes& scopes() {
  static Immortal<Scopes> all;
  return *all;
}

}  // namespace

ProcessPeakScope::ProcessPeakScope() {
  auto& all = scopes();
  const std::lock_guard lock(all.mutex);
  all.set_boundary();
  all.peaks.open(record_, resident_bytes());
}

ProcessPeakScope::~ProcessPeakScope() {
  auto& all = scopes();
  const std::lock_guard lock(all.mutex);
  all.set_boundary();
  all.peaks.close(record_);
}

int64_t ProcessPeakScope::peak_above_start_bytes() const {
  auto& all = scopes();
  const std::lock_guard lock(all.mutex);
  all.set_boundary();
  return std::max<int64_t>(0, record_.peak_bytes - record_.start_bytes);
}

}  // namespace tare::memory
