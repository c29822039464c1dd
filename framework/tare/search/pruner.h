// Pruner: which runs of a sweep end early, wait or continue, by their reports so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/search/trial.h"

namespace tare::search {

/// Holds the steps that `auto` stood for when they were first known. They are kept with the study,
/// so that a resumed sweep decides as before.
struct ResolvedSteps {
  /// Steps, by their option; unset: not known yet.
  std::optional<int64_t> min_resource{}, max_resource{};
  bool operator==(const ResolvedSteps&) const = default;
};

/// Lists the decisions on a trial that has reported its metric.
enum class PruneDecision {
  proceed,
  prune,  ///< the trial ends
  pause   ///< the trial waits until next_promotion() names it
};

/// Holds a pruner's answer. A value.
struct PruneResult {
  PruneDecision decision = PruneDecision::proceed;  ///< what happens to the trial
  std::vector<double> rungs{};  ///< all of the trial's now; new ones are to be stored
  ResolvedSteps resolved{};     ///< to be kept
};

/// Describes a study as a pruner knows it.
struct Study {
  std::string name{};        ///< hyperband computes the bracket of a trial from it
  bool maximize = false;     ///< the higher values of the metric are better
  ResolvedSteps resolved{};  ///< what `auto` has come to
};

/// Names a paused trial that may continue.
struct Promotion {
  int64_t number = 0;  ///< of the trial
  int64_t rung = 0;    ///< where it waited
  bool operator==(const Promotion&) const = default;
};

/// Decides by pure functions of a study and its trials; this class ends no trial. A value with
/// methods: nothing changes after it is made.
class Pruner {
 public:
  virtual ~Pruner() = default;

  /// Decides after a report of `trial`, which is in `history` with all its reports so far, at least
  /// one. The caller stores PruneResult::rungs before the next decision.
  [[nodiscard]] virtual PruneResult decide(const Study& study,
                                           const std::vector<SeenTrial>& history,
                                           const SeenTrial& trial) const = 0;
  /// Whether decide() pauses trials. A trial that waits (TrialState::waiting) and has a value of
  /// its rung is paused.
  [[nodiscard]] virtual bool pauses() const { return false; }
  /// Returns the paused trial that continues next; nothing: a new trial starts.
  [[nodiscard]] virtual std::optional<Promotion> next_promotion(
      bool maximize, const std::vector<SeenTrial>& history) const;
  /// Returns the trials that are compared with trial `number`, which a sampler then learns from, as
  /// in Optuna: all, unless the pruner divides them.
  [[nodiscard]] virtual std::vector<SeenTrial> competitors(const Study& study,
                                                           const std::vector<SeenTrial>& history,
                                                           int64_t number) const;
};

/// Calls Pruner::decide() for the trial with this number. Throws StateError for a trial without a
/// report.
[[nodiscard]] PruneResult decide(const Pruner& pruner, const Study& study,
                                 const std::vector<SeenTrial>& history, int64_t number);

}  // namespace tare::search
