// The tree-structured Parzen estimator: where to look next, from what was seen. Bergstra et al.
// 2011, Algorithms for Hyper-Parameter Optimization; several parameters at once as in Falkner et
// al. 2018, BOHB; defaults and details are those of Optuna 5.0.0.
#pragma once

#include <cstdint>
#include <vector>

#include "tare/search/parzen.h"
#include "tare/search/sampler_type.h"
#include "tare/search/trial.h"

namespace tare::search {

/// Configures the sampler `tpe`; the defaults are Optuna's.
struct TpeOptions {
  int64_t start_trials = 10;  ///< finished ones, before which draws are random
  int64_t candidates = 24;    ///< drawn for each choice; more follow the model more closely
};
void visit_fields(config::Visitor& visit, TpeOptions& o);

/// Holds parameters that are drawn together, and the two densities that decide.
struct TpePart {
  std::vector<const Parameter*> parameters{};  ///< drawn together; of the space
  Parzen good, rest;  ///< densities of the better trials, and of the others
  /// Returns log good - log rest: the larger, the better.
  [[nodiscard]] double acquisition(const Coordinates& point) const;
  /// Draws so many points, at least one, from `good` and returns the best of them.
  [[nodiscard]] Coordinates draw(CounterRng& rng, int64_t candidates) const;
};

/// Returns the number of complete and pruned trials.
[[nodiscard]] size_t finished(const std::vector<SeenTrial>& history);

/// Returns the parameters of `space` in parts: first together those that all finished trials have,
/// then each other one alone; those with a single value are in none. Good are the best tenth of the
/// finished trials, rounded up and at most 25: complete ones by value, then pruned ones by how far
/// they came. The rest has the running ones as well, so that they are not drawn again ("constant
/// liar"). A complete trial without a value is the worst. A value that its parameter no longer
/// allows is as good as none. `space` must outlive the result.
[[nodiscard]] std::vector<TpePart> tpe_parts(const Space& space,
                                             const std::vector<SeenTrial>& history, bool maximize);

}  // namespace tare::search
