// The runs of a sweep that are running, and how the sweep stands.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tare/launch/process.h"
#include "tare/search/pruner.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Describes the present state of a run.
struct RunNow {
  std::string name{};                                       ///< of the run
  int64_t epochs = 0;                                       ///< done
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric by then
  int64_t bytes = 0;                                        ///< reserved in all of its slots
  double seconds = 0;                                       ///< since it started
};

/// Counts the runs in each state.
struct RunCounts {
  int64_t complete = 0, pruned = 0, failed = 0, waiting = 0;  ///< runs that have ended so, or wait
};

/// Reports the progress of a sweep.
struct SweepProgress : RunCounts {
  std::vector<RunNow> running{};  ///< oldest first
  std::string best{};             ///< name of the best complete run; empty: none
  double best_value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric; NaN: none
};

/// Describes a run that has been started and not yet waited for.
struct ActiveRun {
  Trial trial{};                               ///< as the store has it
  std::unique_ptr<launch::Process> process{};  ///< that computes it
  std::vector<size_t> devices{};               ///< its slots
  int64_t bytes = 0;                           ///< reserved in each of them
  int64_t epochs = 0;                          ///< that it trains; 0: not known
  /// The start of the run on this process's clock.
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  Reports reports{};  ///< what the run has reported so far
  /// The pruner's decision; unless it is to continue, the run has been asked to save and end.
  search::PruneDecision decision = search::PruneDecision::proceed;

  /// Returns the run's progress at this moment.
  [[nodiscard]] RunNow now() const;
  /// Whether the process ended because of that decision.
  [[nodiscard]] bool ended_because_of(search::PruneDecision asked,
                                      const launch::ChildEnd& how) const;
};

}  // namespace tare::sweep
