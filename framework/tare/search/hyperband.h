// The pruner `hyperband`: brackets of successive halving that begin at different rungs.
#pragma once

#include "tare/config/field.h"
#include "tare/search/pruner.h"
#include "tare/search/step_count.h"

namespace tare::search {

/// Configures `hyperband`.
struct HyperbandOptions {
  StepCount min_resource{};      ///< steps to the first rung; auto: 1
  StepCount max_resource{};      ///< steps of a whole run; auto: of a complete trial
  int64_t reduction_factor = 3;  ///< one of so many continues
  int64_t bootstrap_count = 0;   ///< the first trials at each rung end there; not with auto
};
void visit_fields(config::Visitor& visit, HyperbandOptions& o);

/// Decides as HyperbandPruner of Optuna 5.0.0 does: Li et al. 2018, Hyperband, with asynchronous
/// brackets. The trials of a bracket compete.
class HyperbandPruner final : public Pruner {
 public:
  /// Throws ConfigError for a bootstrap_count with a max_resource of `auto`, and for a max_resource
  /// below min_resource.
  explicit HyperbandPruner(HyperbandOptions options);

  [[nodiscard]] PruneResult decide(const Study& study, const std::vector<SeenTrial>& history,
                                   const SeenTrial& trial) const override;
  [[nodiscard]] std::vector<SeenTrial> competitors(const Study& study,
                                                   const std::vector<SeenTrial>& history,
                                                   int64_t number) const override;

 private:
  [[nodiscard]] ResolvedSteps resolve(ResolvedSteps known,
                                      const std::vector<SeenTrial>& history) const;
  /// Returns the shares of the brackets; empty while `auto` is not known.
  [[nodiscard]] std::vector<int64_t> shares_of(const ResolvedSteps& resolved) const;

  HyperbandOptions options_;
};

}  // namespace tare::search
