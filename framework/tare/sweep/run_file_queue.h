// RunFileQueue: writes the files of runs that have ended when there is time. Internal.
#pragma once

#include <deque>

#include "tare/sweep/run_recorder.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

class RunFileQueue {
 public:
  /// Takes `recorder` as SweepHost::recorder. Both must outlive the queue.
  RunFileQueue(const SweepOptions& sweep, const RunRecorder* recorder)
      : sweep_(sweep), recorder_(recorder) {}

  /// Adds a run that has ended.
  void add(const Trial& trial) { waiting_.push_back({trial}); }
  /// Adds a run that has ended earlier, which gets its files if it lacks one: a coordinator that
  /// was killed has not come to it, or a power loss has left an empty one, as they are not flushed.
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
  const RunRecorder* recorder_;
  std::deque<Ended> waiting_;
};

}  // namespace tare::sweep
