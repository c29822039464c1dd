// The files that furcate's users find in each run's folder, written when there is time. Internal.
#pragma once

#include <chrono>
#include <deque>

#include "tare/sweep/store.h"

namespace tare::sweep {

class Records {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// `sweep` must outlive it.
  explicit Records(const SweepOptions& sweep) : sweep_(sweep) {}

  /// A run that has ended.
  void add(const Trial& trial, Time start, Time end) { waiting_.push_back({trial, start, end}); }
  /// Writes the files of one run, and returns whether there was one. What cannot be written is a
  /// warning.
  bool write_one();

 private:
  struct Ended {
    Trial trial;
    Time start, end;
  };
  void write(const Ended& run) const;

  const SweepOptions& sweep_;
  std::deque<Ended> waiting_;
};

}  // namespace tare::sweep
