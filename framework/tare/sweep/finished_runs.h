// The runs of a sweep that have ended: printed, counted and written. Internal.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

#include "tare/sweep/progress.h"
#include "tare/sweep/run_file_queue.h"
#include "tare/sweep/run_recorder.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Returns run_data.csv of the finished trials, as CSV: trial, name, state, every setting, the
/// metric, peak and seconds; a header and one row per finished run, settings that a run does not
/// have empty.
[[nodiscard]] std::string run_data_text(const std::string& metric,
                                        const std::vector<Trial>& trials);

class FinishedRuns {
 public:
  /// Takes `out` and `recorder` as SweepHost has them; all must outlive this object. Without
  /// `write_files` the runs have written their files themselves.
  FinishedRuns(const SweepOptions& sweep, std::ostream* out, RunRecorder* recorder,
               bool write_files)
      : sweep_(sweep),
        out_(out),
        recorder_(recorder),
        write_files_(write_files),
        files_(sweep, recorder) {}

  /// Holds exactly these. What their folders lack is written.
  void replace(std::vector<Trial> ended);
  /// Adds and prints a run that has ended, and writes run_data.csv, but not more than once a
  /// second. Returns the trial as it has ended.
  const Trial& add(const Trial& trial, const Outcome& outcome);
  /// Writes run_data.csv, which is the recorder's table where there is one.
  void write();
  /// Writes, when there is time, the files of one run that has ended, or run_data.csv if it is
  /// behind. Returns whether there was anything.
  bool write_more();
  /// Returns the counts of finished runs, and the best run; without runs of an earlier version of
  /// the recipe.
  [[nodiscard]] SweepProgress progress() const;

 private:
  void print(const Trial& trial, const Outcome& outcome) const;

  const SweepOptions& sweep_;
  std::ostream* out_;
  RunRecorder* recorder_;
  bool write_files_;
  std::vector<Trial> ended_;  // by number, as the rows of run_data.csv
  RunFileQueue files_;
  std::chrono::steady_clock::time_point written_{};
  bool behind_ = false;  // run_data.csv
};

}  // namespace tare::sweep
