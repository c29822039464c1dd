// The peak of a trace on the host, counted as Tare's host allocator counts: bytes as requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tare/trace/trace.h"

namespace tare::plan {

/// Counts the blocks that are alive at one moment and were born in one phase.
struct Alive {
  uint32_t phase = 0;  ///< see memory/phase.h
  int64_t bytes = 0;   ///< of all blocks born in it
  int64_t blocks = 0;  ///< how many blocks they are
};

/// Holds the highest live bytes of a phase, or of the whole trace.
struct Peak {
  uint32_t phase = 0;          ///< 0 for the whole trace
  int64_t peak_bytes = 0;      ///< what was alive before included
  int64_t end_bytes = 0;       ///< alive after the last event
  size_t event = 0;            ///< index of the first event after which the peak is reached
  std::vector<Alive> alive{};  ///< at the peak, most bytes first
};

/// Holds the peaks of a trace on the host. A value.
struct HostPeak {
  Peak whole{};  ///< of the whole trace
  /// The phases in order of their first event; a phase that neither allocates nor frees is
  /// omitted. What a phase finds alive counts in its peak, as in a memory::PeakScope opened at its
  /// begin.
  std::vector<Peak> phases{};

  /// Returns the peak of a phase; null if the phase does not occur.
  [[nodiscard]] const Peak* phase(uint32_t id) const;
};

/// Computes the peak of a trace, and nothing else counts; an empty trace has a peak of 0.
[[nodiscard]] HostPeak host_peak(const Trace& trace);

}  // namespace tare::plan
