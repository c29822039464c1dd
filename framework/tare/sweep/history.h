// What a sampler and a pruner see of the trials of a study.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tare/sweep/store.h"

namespace tare::sweep {

/// Values of parameters by name, in Optuna's internal representation: the index of a choice, or the
/// number itself.
using Point = std::map<std::string, double>;

/// One trial. A value.
struct SeenTrial {
  int64_t number = 0;
  TrialState state = TrialState::waiting;
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric; NaN without
  std::map<int64_t, double> reports{};  ///< metric by step; NaN: it was not a number
  std::vector<double> rungs{};          ///< `completed_rung_0`, 1, ...: the metric at each
  Point params{};                       ///< only of the parameters that it has

  /// The highest step with a report; -1 without.
  [[nodiscard]] int64_t last_step() const { return reports.empty() ? -1 : reports.rbegin()->first; }
};

/// The parameters that `cell` sets; others are left out.
[[nodiscard]] Point point_of(const Space& space, const Cell& cell);

}  // namespace tare::sweep
