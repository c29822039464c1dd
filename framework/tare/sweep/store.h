// The store of a sweep: one SQLite file in Optuna's schema, so that Optuna and its dashboard open
// it, with tables of our own beside.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/launch/process.h"
#include "tare/search/pruner.h"
#include "tare/search/trial.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// One row: a run and how it went.
struct Trial {
  int64_t id = 0;
  int64_t number = 0;  ///< from 0, never used again; in the run's name
  search::TrialState state = search::TrialState::waiting;
  std::string identity{};  ///< see Identity
  std::string run_name{};  ///< of the folder
  search::Cell cell{};
  int64_t attempt = 0;        ///< earlier trials of the same run
  int64_t asked_bytes = 0;    ///< to reserve, after an out-of-memory; 0: by the plan
  std::string reason{};       ///< of a failure: "out of memory", "signal 9", "exit 2", ...
  launch::ProcessId child{};  ///< its process, as the next coordinator recognises it
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric; NaN without
  int64_t peak_bytes = 0;                                   ///< measured; 0: not known
  double seconds = 0;
  std::optional<int64_t> gpu_id{};  ///< of its card among the sweep's; -1: the host; unset: it was
                                    ///< started by another coordinator
  std::chrono::system_clock::time_point started{}, ended{};  ///< 1970: it has not; the last time
};

/// What a run that has ended leaves.
struct Outcome {
  search::TrialState state = search::TrialState::failed;
  std::string reason{};
  std::vector<double> values{};  ///< of the metric, by epoch
  /// The epoch, from 1, whose weights the run ended with, where it restored those of an earlier
  /// one; 0: the last.
  int64_t restored_epoch = 0;
  int64_t peak_bytes = 0;  ///< highest tracked bytes; 0: not known
  int64_t exit_code = 0;
  double seconds = 0;
  std::chrono::system_clock::time_point ended = std::chrono::system_clock::now();

  /// The trial's value, if it is complete or pruned: that of the weights which the run ended with.
  /// NaN without an epoch.
  [[nodiscard]] double value() const {
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    const bool earlier = restored_epoch > 0 && restored_epoch <= std::ssize(values);
    return earlier ? values[static_cast<size_t>(restored_epoch) - 1] : values.back();
  }
};

/// The reason of a trial that waited and is no longer wanted.
inline constexpr const char* kDropped = "dropped";

/// The metric by epochs done, by number of the trial.
using Reported = std::map<int64_t, std::map<int64_t, double>>;

/// What a store holds.
struct StoreContents {
  std::vector<Trial> trials{};  ///< in order of number
  Reported reports{};
  launch::ProcessId coordinator{};  ///< the latest process that has written it
};

/// Writes nothing. Throws IoError if the file is not there; FormatError if it has no such study or
/// is of another schema version.
[[nodiscard]] StoreContents read_store(const std::filesystem::path& path, const std::string& study);

/// Written by one process at a time, the coordinator, which holds the folder's lock; read by any.
/// Every change is a transaction. Throws IoError, also for a file of another kind; FormatError for
/// a store of another schema version; ConfigError for a study with another metric goal.
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
  /// A waiting trial more.
  Trial add(const search::Cell& cell, const std::string& identity);
  /// The number that the next trial will have.
  [[nodiscard]] int64_t next_number() const;
  /// In order of number.
  [[nodiscard]] std::vector<Trial> trials() const;
  /// The same for samplers and pruners, without what was dropped.
  [[nodiscard]] std::vector<search::SeenTrial> history() const;
  /// Returns the time that it has written.
  std::chrono::system_clock::time_point start(const Trial& trial, const launch::ProcessId& child,
                                              int64_t reserved_bytes);
  /// The metric of a running trial after so many epochs; see PrunerOptions.
  void report(const Trial& trial, int64_t step, double value);
  void set_rungs(const Trial& trial, const std::vector<double>& values);
  void keep(const search::ResolvedSteps& steps);
  [[nodiscard]] search::ResolvedSteps resolved_steps() const;
  void finish(const Trial& trial, const Outcome& outcome);
  /// The same, and in one transaction a waiting trial of the same run, with the same settings and
  /// folder, that asks for so many bytes.
  Trial finish_and_retry(const Trial& trial, const Outcome& outcome, int64_t asked_bytes);
  /// A run that was stopped waits again, as if it had not started.
  void put_back(const Trial& trial);
  /// A trial as it was, with its number, of a store that is being rebuilt: waiting, or with
  /// `outcome` as it ended.
  void restore(const Trial& trial, const std::optional<Outcome>& outcome);
  /// Throws IoError if the store's file has been deleted, moved or replaced meanwhile.
  void check_still_there() const;

 private:
  void finish_in_transaction(const Trial& trial, const Outcome& outcome);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tare::sweep
