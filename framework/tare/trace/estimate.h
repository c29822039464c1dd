// Estimates the memory that a part of a trace needs on a device: the peak, what it consists of,
// where it is reached, and whether it fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tare/memory/accountable.h"
#include "tare/trace/marks.h"
#include "tare/trace/target.h"
#include "tare/trace/trace.h"

namespace tare::plan {

/// Names the events [begin, end) of a trace.
struct Section {
  size_t begin = 0, end = 0;  ///< indices of Trace::events
};

/// Holds the memory that a section of a trace needs on a device. A value.
struct Estimate {
  int64_t start_bytes = 0;  ///< allocated when the section begins
  int64_t peak_bytes = 0;   ///< highest allocated bytes in it, above its start; >= 0
  /// The highest bytes that the allocator holds during the section, including what was there
  /// before; on the host start_bytes + peak_bytes.
  int64_t reserved_bytes = 0;
  /// Holds the bytes alive at the peak less the bytes alive at the start; sums to peak_bytes.
  CategoryBytes categories{};
  std::string at{};  ///< "backward, convolution_backward": phase and operator of the peak
  bool fits = true;  ///< all of the trace up to the end of the section
  /// CUDA: whether the allocator has to return its cache in two attempts in a row, after which
  /// adapt::Search takes smaller parts.
  bool returns_cache = false;
};

/// Estimates the peaks of a trace. A block is in the category that note() gave it, else in a
/// category by its birth: `data` batch; `forward` and alive after it, activations; others
/// workspace.
///
/// Host: bytes as requested. CUDA: the trace is played back through CudaCache, with the workspaces
/// of cuBLAS and cublasLt (see Target) taken where the trace marks their products; if it does not
/// fit, the figures are those of a card that refuses nothing. A pure function.
[[nodiscard]] Estimate estimate(const Trace& trace, Section section, const Target& target);

}  // namespace tare::plan
