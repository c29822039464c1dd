// The store of a sweep: one SQLite file in Optuna's schema, so that Optuna and its dashboard open
// it, with tables of our own beside.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/search/pruner.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Reads and writes the database of a sweep. One process at a time writes it, the coordinator,
/// which holds the folder's lock; any process may read it. Every change is a transaction. Throws
/// IoError, also for a file of another kind; FormatError for a store of another schema version;
/// ConfigError for a study with another metric goal.
class Store {
 public:
  /// Creates the file and the study if they are not there. `sweep` must outlive it.
  Store(const std::filesystem::path& path, const SweepOptions& sweep);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Adds a waiting trial for each cell whose identity has no trial yet, or (`failed_too`) has
  /// failed, and drops waiting ones that are not among the cells. A dropped trial has failed with
  /// the reason kDropped, as Optuna counts rows to number them.
  void wait_for(const std::vector<search::Cell>& cells, const std::vector<std::string>& identities,
                bool failed_too = false);
  /// Adds a waiting trial.
  Trial add(const search::Cell& cell, const std::string& identity);
  /// Returns the number that the next trial will have.
  [[nodiscard]] int64_t next_number() const;
  /// Returns the trials in order of number.
  [[nodiscard]] std::vector<Trial> trials() const;
  /// Returns the trials as samplers and pruners see them, without what was dropped.
  [[nodiscard]] std::vector<search::SeenTrial> history() const;
  /// Returns the time that it has written.
  std::chrono::system_clock::time_point start(const Trial& trial, const launch::ProcessId& child,
                                              int64_t reserved_bytes);
  /// Records the metric of a running trial after so many epochs; see Pruner.
  void report(const Trial& trial, int64_t step, double value);
  /// Records the metric of a trial at each rung that it has reached.
  void set_rungs(const Trial& trial, const std::vector<double>& values);
  /// Keeps what `auto` has come to, for a resumed sweep.
  void keep(const search::ResolvedSteps& steps);
  /// Returns what keep() was given last; unset fields without one.
  [[nodiscard]] search::ResolvedSteps resolved_steps() const;
  /// Records how a running trial ended.
  void finish(const Trial& trial, const Outcome& outcome);
  /// Finishes the trial and adds, in the same transaction, a waiting trial of its run with its
  /// settings and folder, that asks for so many bytes.
  Trial finish_and_retry(const Trial& trial, const Outcome& outcome, int64_t asked_bytes);
  /// Puts back a run that was stopped: it waits again, as if it had not started.
  void put_back(const Trial& trial);
  /// Restores a trial as it was, with its number, of a store that is being rebuilt: waiting, or
  /// with `outcome` as it ended.
  void restore(const Trial& trial, const std::optional<Outcome>& outcome);
  /// Throws IoError if the store's file has been deleted, moved or replaced meanwhile.
  void check_still_there() const;

 private:
  void finish_in_transaction(const Trial& trial, const Outcome& outcome);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tare::sweep
