// The files that furcate's users find in each run's folder, written when there is time. Internal.
#pragma once

#include <deque>

#include "tare/sweep/store.h"

namespace tare::sweep {

class RunFileQueue {
 public:
  /// `sweep` must outlive it.
  explicit RunFileQueue(const SweepOptions& sweep) : sweep_(sweep) {}

  /// A run that has ended.
  void add(const Trial& trial) { waiting_.push_back({trial}); }
  /// One that has ended earlier, and gets its files if it lacks one: a coordinator that was killed
  /// has not come to it, or a power loss has left an empty one, as they are not flushed.
  void add_missing(const Trial& trial) { waiting_.push_back({trial, true}); }
  /// Looks after one run, and returns whether there was one. What cannot be written is a warning.
  bool write_one();

 private:
  struct Ended {
    Trial trial;
    bool only_missing = false;
  };
  void write(const Trial& trial) const;

  const SweepOptions& sweep_;
  std::deque<Ended> waiting_;
};

}  // namespace tare::sweep
