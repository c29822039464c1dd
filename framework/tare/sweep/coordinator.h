// Runs a sweep: starts runs where there is a free slot, and keeps the store.
#pragma once

#include <functional>
#include <iosfwd>

#include "tare/launch/local_executor.h"
#include "tare/sweep/progress.h"
#include "tare/sweep/resources.h"
#include "tare/sweep/run_recorder.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// Provides the functions that a sweep needs from the program that runs it.
struct SweepHost {
  /// The command of one run: `settings` are key=value for its recipe, its folder is folder/name;
  /// `slot` is its first, and each of its ranks may take `budget_bytes`. It starts its ranks,
  /// unless the executor does. It writes report.json, continues what it finds unfinished, and exits
  /// with 3 when it is out of memory, and with 128 + N if a signal N has ended a rank.
  std::function<std::vector<std::string>(const std::vector<std::string>& settings,
                                         const launch::DeviceSlot& slot, int64_t budget_bytes)>
      command{};
  /// Returns the places for runs, asked at the start and after each edit: the slots of the
  /// executor, the GPUs or the host; empty: host_slot(). A run on a GPU sees no other.
  std::function<std::vector<launch::DeviceSlot>(const Resources&)> slots{};
  /// Whether a slot is there no longer, asked after a run on it has failed: no other run starts
  /// there. Empty: slots are never lost.
  std::function<bool(const launch::DeviceSlot& slot)> is_lost{};
  /// The bytes of tensors that a rank of a run with these settings will need; unset: it cannot be
  /// predicted.
  std::function<std::optional<int64_t>(const std::vector<std::string>& settings)> predict{};
  /// Returns a text that is equal for runs that need the same memory, asked where `predict` gives
  /// nothing; empty: all do.
  std::function<std::string(const std::vector<std::string>& settings)> signature{};
  /// Returns the epochs that a run with these settings trains; 0 or empty: they are not known. A
  /// run that has reported all of them is not paused.
  std::function<int64_t(const std::vector<std::string>& settings)> epochs{};
  /// Returns the outcome of a run from the end of its process; empty: its report.json and tables
  /// show it. With one, nothing of a run is known before its end, and the run writes all of its
  /// files itself.
  std::function<Outcome(const std::filesystem::path& folder, const launch::ChildEnd& end)>
      outcome{};
  /// Returns variables for the environment of a run that starts now; empty: none.
  std::function<std::vector<std::pair<std::string, std::string>>()> environment{};
  RunRecorder* recorder = nullptr;       ///< beside the store; null: none
  launch::Executor* executor = nullptr;  ///< of the runs; null: a LocalExecutor
  /// The sweep's options once more, if somebody has edited them; asked a few times a second.
  std::function<std::optional<SweepOptions>()> edited{};
  /// Whether the sweep is interrupted: then no other run starts, and the runs are asked to save and
  /// end.
  std::function<bool()> interrupted{};
  /// Called a few times a second while runs are running.
  std::function<void(const SweepProgress&)> progress{};
  bool retry_failed = false;    ///< runs that have failed earlier start again
  std::ostream* out = nullptr;  ///< one line for each run that ends; null: silent
};

/// Reports the result of a sweep; the counts are of the runs that are wanted now.
struct SweepReport : RunCounts {
  int64_t started = 0;       ///< by this call
  bool interrupted = false;  ///< it was asked to end before all runs were done
};

/// Runs every cell that has not run yet, each once, or as many as are to be drawn, and returns when
/// none can start any more. Runs that the pruner ends save and end as after an interrupt; runs
/// that it pauses wait, and continue if they are promoted. A run that cannot be planned, because
/// its settings are wrong, has failed; the others continue. Edited options are in force at once:
/// new cells join, waiting ones that have gone leave, running ones are not disturbed; other names,
/// recipes, folders, methods and metrics are refused with a warning. If the recipe itself changes
/// meanwhile, no other run starts. Throws StateError if another process sweeps in the folder;
/// ConfigError, also for a folder of another sweep, and for one with runs whose store is lost;
/// IoError, also if the folder or the store is deleted meanwhile, and then kills the runs.
SweepReport run_sweep(const SweepOptions& sweep, const SweepHost& host);

}  // namespace tare::sweep
