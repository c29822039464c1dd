// Makes a sweep's lost store again, from its runs' folders and run_data.csv.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tare/launch/process.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// Counts the trials of a rebuilt store, and the folders that it could not take in.
struct RebuildReport {
  int64_t complete = 0, pruned = 0, failed = 0, waiting = 0;  ///< trials by their state
  int64_t unknown = 0;  ///< folders whose run neither trial.json nor run_data.csv describes
};

/// Writes a new store for the runs in log_dir. A run whose folder holds its whole report is
/// complete; for the others, pruned or failed, run_data.csv decides; the rest waits, and continues
/// from its checkpoint. Rows of a run_data.csv with the folders and the last values of runs, which
/// other programs have written, count as complete runs. `outcome` as SweepHost::outcome; empty: by
/// report.json. Throws StateError if the store is there, or another process sweeps in the folder;
/// ConfigError if nothing is to be rebuilt; IoError.
RebuildReport rebuild_store(
    const SweepOptions& sweep,
    const std::function<Outcome(const std::filesystem::path& folder, const launch::ChildEnd& end)>&
        outcome = {});

}  // namespace tare::sweep
