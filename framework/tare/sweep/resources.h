// Divides the resources of a sweep among its runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tare/search/grid.h"
#include "tare/sweep/placement.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Returns the settings of one cell for `tare run`: SweepOptions::set, the cell, folder and name.
[[nodiscard]] std::vector<std::string> settings_of(const SweepOptions& sweep,
                                                   const search::Cell& cell,
                                                   const std::string& run_name);

/// Returns the slot that the runs of a sweep share: cores and memory of this machine.
[[nodiscard]] launch::DeviceSlot host_slot(const Resources& resources);

/// Returns how many slots a run takes at once: a card for each of its ranks; else one, which all of
/// its ranks share.
[[nodiscard]] size_t slots_of_run(const std::vector<launch::DeviceSlot>& slots,
                                  const Resources& resources);

/// Returns how many ranks of a run are in each of its slots.
[[nodiscard]] int64_t ranks_in_slot(const std::vector<launch::DeviceSlot>& slots,
                                    const Resources& resources);

/// Runs at a time: Resources::jobs at most, 0: as many as the slots take.
[[nodiscard]] int64_t jobs_in(const std::vector<launch::DeviceSlot>& slots,
                              const Resources& resources);

/// Throws ConfigError, without a place, where a run has more ranks than there are cards for them,
/// or processors unless Resources::jobs is set.
void check_ranks_fit(const std::vector<launch::DeviceSlot>& slots, const Resources& resources);

/// Holds the slots of a sweep that runs.
class Slots {
 public:
  /// Looks for the devices that the options allow.
  using Find = std::function<std::vector<launch::DeviceSlot>(const Resources&)>;

  /// Finds the slots with `find`, see SweepHost::slots.
  Slots(Find find, const Resources& resources);
  /// Applies edited options. What is free now lacks what the runs hold, which is counted already:
  /// the slots stay as large as they were, unless the options give a size.
  void update(const Resources& resources);

  /// Takes a slot away that is there no longer: it has no memory and takes no runs.
  void retire(size_t slot, const Resources& resources);

  /// Returns the slots, as placements number them.
  [[nodiscard]] const std::vector<launch::DeviceSlot>& all() const { return all_; }
  [[nodiscard]] int64_t jobs() const { return jobs_; }     ///< runs at a time
  [[nodiscard]] size_t of_run() const { return of_run_; }  ///< see slots_of_run()
  [[nodiscard]] int64_t ranks() const { return ranks_; }   ///< of a run in a slot, ranks_in_slot()
  /// Returns the bytes that a run can have on each of its slots at most.
  [[nodiscard]] int64_t largest_bytes() const { return most_on_each(all_, of_run_); }
  /// Adds the memory of a process's context to `bytes`; 0 (unknown) stays 0.
  [[nodiscard]] int64_t with_context(int64_t bytes) const;

 private:
  [[nodiscard]] std::vector<launch::DeviceSlot> found(const Resources& resources) const;

  Find find_;
  std::vector<launch::DeviceSlot> all_;
  std::set<size_t> retired_;
  size_t of_run_;
  int64_t ranks_, jobs_;
};

/// Returns how many threads, at least 1, each of so many processes, the ranks of all runs, gets on
/// this machine's cores. A number in OMP_NUM_THREADS, which the user has set for the sweep, is the
/// most.
[[nodiscard]] int64_t threads_of_each(int64_t processes);

/// Returns the bytes to reserve for a rank of a run: its declared memory, or a tenth above the
/// prediction; 0 without either.
[[nodiscard]] int64_t reservation(const SweepOptions& sweep, std::optional<int64_t> predicted);

/// Predicts the memory of waiting runs, from plans and from what other runs have taken.
class MemoryEstimator {
 public:
  /// Settings of a run as `key=value`.
  using Settings = std::vector<std::string>;
  /// Predicts the peak of a rank of a run in bytes; unset: unknown.
  using Predict = std::function<std::optional<int64_t>(const Settings&)>;
  /// Returns the settings that change how much memory a run takes, as one text.
  using Signature = std::function<std::string(const Settings&)>;

  /// Takes `predict` and `signature` as described at SweepHost. All must outlive the estimator.
  MemoryEstimator(const SweepOptions& sweep, const Slots& slots, const Predict& predict,
                  const Signature& signature)
      : sweep_(sweep), slots_(slots), predict_(predict), signature_(signature) {}

  /// Returns the bytes to reserve in each slot of a run; 0: no plan knows them. Throws Error for
  /// settings that the recipe does not take.
  [[nodiscard]] int64_t planned(const Trial& trial) const;
  /// Returns these bytes where no plan knows them: by the highest peak of runs with the same
  /// signature, else of any run; all of the largest slots if none has ended.
  [[nodiscard]] int64_t measured(const Trial& trial);
  /// Adds a trial that has ended.
  void add(const Trial& trial);

 private:
  [[nodiscard]] int64_t peak_of_kind(const Trial& trial);
  [[nodiscard]] const std::string& signature_of(const Trial& trial);

  const SweepOptions& sweep_;
  const Slots& slots_;
  const Predict& predict_;
  const Signature& signature_;
  std::vector<Trial> unread_;  // signatures are asked only if somebody wants to know
  std::map<int64_t, std::string> signatures_;  // by number
  std::map<std::string, int64_t> peaks_;       // by signature
  int64_t highest_ = 0;
};

/// Returns the bytes that a failed run asks for in each of its slots when it is tried again. A run
/// that was out of memory asks for half as much more, at last for all of them, and a killed run for
/// as much as before. Unset: it would fail again, or has been tried often enough.
[[nodiscard]] std::optional<int64_t> asked_again(const OnFailure& limits, const Trial& trial,
                                                 int64_t reserved_bytes, const Slots& slots,
                                                 const Outcome& outcome);

}  // namespace tare::sweep
