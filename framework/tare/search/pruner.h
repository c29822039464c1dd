// Which runs of a sweep end early: rungs of steps, at each of which only the best go on.
#pragma once

#include <optional>

#include "tare/search/pruner_options.h"
#include "tare/search/trial.h"

namespace tare::search {

/// What `auto` came to when it could first be decided. Kept with the study, for a resumed sweep to
/// decide the same.
struct ResolvedSteps {
  std::optional<int64_t> min_resource{}, max_resource{};
  bool operator==(const ResolvedSteps&) const = default;
};

enum class PruneDecision {
  proceed,
  prune,  ///< the trial ends
  pause   ///< asha_promotion: the trial waits until next_promotion() names it
};

struct PruneResult {
  PruneDecision decision = PruneDecision::proceed;
  std::vector<double> rungs{};  ///< all of the trial's now; new ones are to be stored
  ResolvedSteps resolved{};     ///< to be kept
};

/// A study as a pruner knows it.
struct Study {
  std::string name{};  ///< hyperband tells a trial's bracket by it
  bool maximize = false;
  ResolvedSteps resolved{};
};

/// Decides after a report of trial `number`, which is in `history` with all its reports so far.
/// `asha` and `hyperband` decide as SuccessiveHalvingPruner and HyperbandPruner of Optuna 5.0.0 do:
/// Li et al. 2020, A System for Massively Parallel Hyperparameter Tuning, and Li et al. 2018,
/// Hyperband, with asynchronous brackets. At a rung a trial continues if its value is among the
/// best 1 / reduction_factor (at least one; equal ones too) of all values stored for that rung. A
/// value that is not a number ends it. The caller stores PruneResult::rungs before the next
/// decision.
[[nodiscard]] PruneResult decide(const PrunerOptions& options, const Study& study,
                                 const std::vector<SeenTrial>& history, int64_t number);

/// A paused trial that may go on.
struct Promotion {
  int64_t number = 0;
  int64_t rung = 0;  ///< where it waited
  bool operator==(const Promotion&) const = default;
};

/// Li et al. 2020, Algorithm 2: from the highest rung down, the best trial that waits there and is
/// in the first floor(n / reduction_factor) of its n values; nothing if none is: then a new trial
/// starts. A trial that waits (TrialState::waiting) and has a value of its rung is paused.
[[nodiscard]] std::optional<Promotion> next_promotion(const PrunerOptions& options, bool maximize,
                                                      const std::vector<SeenTrial>& history);

/// The trials that are compared with trial `number`: for hyperband those of its bracket, else all.
/// TPE with hyperband samples from them, as Optuna does.
[[nodiscard]] std::vector<SeenTrial> competitors(const PrunerOptions& options, const Study& study,
                                                 const std::vector<SeenTrial>& history,
                                                 int64_t number);

}  // namespace tare::search
