// Chooses the next draw of a sweep and the runs that end early, from all it has seen. Internal.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tare/search/pruner.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

class Tuner {
 public:
  /// Starts with the trials in the store. `sweep` and `store` must outlive the tuner.
  Tuner(const SweepOptions& sweep, Store& store);

  /// Whether cells are drawn one by one, and not counted.
  [[nodiscard]] bool draws() const { return draws_; }
  /// Uses the pruner of the sweep's edited options.
  void apply_edit();
  /// Adds the trial, or replaces it by its new state.
  void add(const Trial& trial);
  /// Removes a trial whose recipe has changed.
  void remove(int64_t number);

  /// Returns the cell of trial `number`; nullopt: no cell is left. Throws ConfigError as sample()
  /// does.
  [[nodiscard]] std::optional<search::Cell> draw(int64_t number) const;

  /// Takes the metric of a run, by epoch, so far: keeps what is new, and decides.
  search::PruneDecision report(const Trial& trial, const std::vector<double>& values);
  /// Returns the paused trial that continues next, if one may.
  [[nodiscard]] std::optional<int64_t> promotion() const;
  /// Whether a waiting trial has been paused, and waits for its promotion.
  [[nodiscard]] bool is_paused(const Trial& trial) const;

 private:
  [[nodiscard]] search::Study study() const;
  [[nodiscard]] search::SeenTrial* find(int64_t number);

  const SweepOptions& sweep_;
  Store& store_;
  std::vector<search::SeenTrial> history_;  // by number
  search::ResolvedSteps resolved_;
  bool draws_;
  std::shared_ptr<const search::Pruner> pruner_;
};

}  // namespace tare::sweep
