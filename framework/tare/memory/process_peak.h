// The peak of the process's memory on the host, tensors or not, over a scope.
#pragma once

#include <cstdint>

#include "tare/memory/peak_record.h"

namespace tare::memory {

/// Measures the highest resident set from its construction on. Scopes may nest and overlap: the
/// kernel keeps one peak, and opening, closing or reading a scope adds it to all open ones and
/// starts it again (/proc/self/clear_refs). If other code starts it again too, the peaks of open
/// scopes are too low; where the system does not allow it, they may be those of earlier work. The
/// kernel counts pages in groups: figures are off by up to 256 KiB for each thread. Thread-safe.
class ProcessPeakScope {
 public:
  ProcessPeakScope();
  ~ProcessPeakScope();
  ProcessPeakScope(const ProcessPeakScope&) = delete;
  ProcessPeakScope& operator=(const ProcessPeakScope&) = delete;

  /// Returns the resident set when the scope opened.
  [[nodiscard]] int64_t start_bytes() const { return record_.start_bytes; }
  /// Returns how far the resident set has risen above start_bytes(); never negative.
  [[nodiscard]] int64_t peak_above_start_bytes() const;

 private:
  mutable PeakRecord record_;
};

}  // namespace tare::memory
