// The runs of a sweep that have ended: told, counted, and written for furcate's users. Internal.
#pragma once

#include <chrono>
#include <iosfwd>
#include <vector>

#include "tare/sweep/furcate_table.h"
#include "tare/sweep/progress.h"
#include "tare/sweep/records.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

class Results {
 public:
  /// `sweep` must outlive it; `out` as Surroundings::out. Without `write_files` the runs have
  /// written their files themselves.
  Results(const SweepOptions& sweep, std::ostream* out, bool write_files)
      : sweep_(sweep), out_(out), write_files_(write_files) {}

  /// Holds exactly these. What their folders lack is written.
  void become(std::vector<Trial> ended);
  /// One more: says so, and writes run_data.csv, but not more than once a second. The trial as it
  /// has ended.
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
  Records records_{sweep_};
  FurcateTable furcate_{sweep_.log_dir};
  std::chrono::steady_clock::time_point written_{};
  bool behind_ = false;  // run_data.csv
};

}  // namespace tare::sweep
