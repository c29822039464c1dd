// Traces of real work on few samples, and their extrapolation to more samples. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/trace/trace_events.h"

namespace tare::plan {

/// Does the work on the host and returns what this process allocates and frees there meanwhile,
/// with the marks and notes of the work, up to its last mark; operators have no names in it. One at
/// a time, and none beside trace(). Throws what `body` throws; StateError for more than `capacity`
/// events.
[[nodiscard]] Trace host_trace(const std::function<void()>& body,
                               size_t capacity = size_t{1} << 20);

/// Passes a mark, or a note, on to the host_trace in progress; false if there is none.
bool host_mark(const std::string& name);
bool host_note(const Ledger& ledger);

/// Holds a trace whose sizes are affine in some numbers, such as that of samples: f(x) = f(a) + sum
/// over the numbers of slope * (x - a).
class AffineTrace {
 public:
  using Point = std::vector<int64_t>;
  using At = std::function<Trace(const Point&)>;

  /// Takes a trace at `base` and, for every number that differs there from `other`, one with that
  /// number of `other`; then compares the extrapolation to `third` with a trace there. Throws
  /// NotPlannable where the traces differ in more than their sizes, or the sizes are not affine.
  AffineTrace(const At& trace_at, Point base, const Point& other, const Point& third);

  /// Returns the trace at a point; unset if a size there is not a whole number of bytes, which
  /// shows that the sizes are not affine.
  [[nodiscard]] std::optional<Trace> at(const Point& point) const;

 private:
  Point base_;
  Trace trace_;
  std::vector<int64_t> steps_;               // by number; 0: its traces do not differ
  std::vector<std::vector<int64_t>> rises_;  // in bytes a step, by number, then by event
};

}  // namespace tare::plan
