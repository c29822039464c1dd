// The runs of a sweep that have ended: printed, counted and written. Internal.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

#include "tare/sweep/furcate_table.h"
#include "tare/sweep/progress.h"
#include "tare/sweep/run_file_queue.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// run_data.csv of trials that have ended, as CSV: trial, name, state, every setting, the metric,
/// peak and seconds; a header and one row per finished run, settings that a run does not have
/// empty.
[[nodiscard]] std::string run_data_text(const std::string& metric,
                                        const std::vector<Trial>& trials);

class FinishedRuns {
 public:
  /// `sweep` must outlive it; `out` as SweepHost::out. Without `write_files` the runs have
  /// written their files themselves.
  FinishedRuns(const SweepOptions& sweep, std::ostream* out, bool write_files)
      : sweep_(sweep), out_(out), write_files_(write_files) {}

  /// Holds exactly these. What their folders lack is written.
  void replace(std::vector<Trial> ended);
  /// Adds and prints a run that has ended, and writes run_data.csv, but not more than once a
  /// second. Returns the trial as it has ended.
  const Trial& add(const Trial& trial, const Outcome& outcome);
  /// Writes run_data.csv, with furcate's columns for its configurations.
  void write();
  /// When there is time: the files of one run that has ended, or run_data.csv if it is behind.
  /// Returns whether there was anything.
  bool write_more();
  /// Counts of what has ended, and the best.
  [[nodiscard]] SweepProgress progress() const;

 private:
  void say(const Trial& trial, const Outcome& outcome) const;

  const SweepOptions& sweep_;
  std::ostream* out_;
  bool write_files_;
  std::vector<Trial> ended_;  // by number, as the rows of run_data.csv
  RunFileQueue files_{sweep_};
  FurcateTable furcate_{sweep_.log_dir};
  std::chrono::steady_clock::time_point written_{};
  bool behind_ = false;  // run_data.csv
};

}  // namespace tare::sweep
