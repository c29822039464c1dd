// Successive halving: rungs of steps, from each of which only the best trials continue. The pruners
// `asha` and `asha_promotion`, and the rules that `hyperband` shares with them.
#pragma once

#include "tare/config/field.h"
#include "tare/search/pruner.h"
#include "tare/search/step_count.h"

namespace tare::search {

/// Configures `asha` and `asha_promotion`.
struct AshaOptions {
  StepCount min_resource{};      ///< steps to the first rung; auto: a hundredth of the longest
                                 ///< complete trial, which has to come first
  int64_t reduction_factor = 4;  ///< one of so many continues
  int64_t min_early_stopping_rate = 0;  ///< the first rung is at min_resource * factor^rate
  int64_t bootstrap_count = 0;          ///< the first trials at each rung end there; not with auto
};
void visit_fields(config::Visitor& visit, AshaOptions& o);

/// Holds the numbers of successive halving, resolved.
struct Halving {
  int64_t first = 1;      ///< steps to the lowest rung, before the rate
  int64_t factor = 4;     ///< one of so many continues at each rung, >= 2
  int64_t rate = 0;       ///< the lowest rung is at first * factor^rate
  int64_t bootstrap = 0;  ///< the first trials at each rung end there
  bool pauses = false;    ///< a trial waits at a rung in place of ending there
};

/// Returns the last step of the longest complete trial; -1 without.
[[nodiscard]] int64_t longest(const std::vector<SeenTrial>& history);

/// Climbs as many rungs as the last report allows. At a rung a trial continues if its value is
/// among the best 1 / factor (at least one; equal ones too) of all values stored for that rung. A
/// value that is not a number ends it. PruneResult::resolved stays empty.
[[nodiscard]] PruneResult halve(const Halving& rules, bool maximize,
                                const std::vector<SeenTrial>& history, const SeenTrial& trial);

/// Decides as SuccessiveHalvingPruner of Optuna 5.0.0 does: Li et al. 2020, A System for
/// Massively Parallel Hyperparameter Tuning. With `promotes` every trial pauses at its rung, and
/// next_promotion() is Algorithm 2 of the paper: from the highest rung down, the best trial that
/// waits there and is in the first floor(n / reduction_factor) of its n values.
class AshaPruner final : public Pruner {
 public:
  /// Throws ConfigError for a bootstrap_count with `auto`.
  explicit AshaPruner(AshaOptions options, bool promotes = false);

  [[nodiscard]] PruneResult decide(const Study& study, const std::vector<SeenTrial>& history,
                                   const SeenTrial& trial) const override;
  [[nodiscard]] bool pauses() const override { return promotes_; }
  [[nodiscard]] std::optional<Promotion> next_promotion(
      bool maximize, const std::vector<SeenTrial>& history) const override;

 private:
  AshaOptions options_;
  bool promotes_;
};

}  // namespace tare::search
