// The runs of a sweep that have ended: told, counted, and written for furcate's users. Internal.
#pragma once

#include <chrono>
#include <iosfwd>
#include <vector>

#include "tare/sweep/progress.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

class Results {
 public:
  /// `sweep` must outlive it; `out` as Surroundings::out.
  Results(const SweepOptions& sweep, std::ostream* out) : sweep_(sweep), out_(out) {}

  /// Holds exactly these.
  void become(std::vector<Trial> ended) { ended_ = std::move(ended); }
  /// One more: says so, and writes run_data.csv, but not more than once a second. The trial as it
  /// has ended.
  const Trial& add(const Trial& trial, const Outcome& outcome);
  void write();
  /// Counts of what has ended, and the best.
  [[nodiscard]] SweepProgress progress() const;

 private:
  void say(const Trial& trial, const Outcome& outcome) const;

  const SweepOptions& sweep_;
  std::ostream* out_;
  std::vector<Trial> ended_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace tare::sweep
