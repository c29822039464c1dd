// One trial of a study: what it sets, how it stands, and what samplers and pruners know of it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tare/search/space.h"

namespace tare::search {

/// Holds the settings that one run has beside SearchOptions::set. A value.
using Cell = Settings;

/// Lists Optuna's states.
enum class TrialState { waiting, running, complete, pruned, failed };
[[nodiscard]] const char* to_string(TrialState state);  ///< returns "WAITING", ..., "FAIL"
/// Returns the state with that name; unset for another text.
[[nodiscard]] std::optional<TrialState> trial_state(const std::string& name);

/// Maps parameters to their values, in Optuna's internal representation: the index of a choice, or
/// the number itself.
using Point = std::map<std::string, double>;

/// Describes one trial. A value.
struct SeenTrial {
  int64_t number = 0;                                       ///< of the trial in its study
  TrialState state = TrialState::waiting;                   ///< how it stands
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric; NaN without
  std::map<int64_t, double> reports{};  ///< metric by step; NaN: it was not a number
  std::vector<double> rungs{};          ///< `completed_rung_0`, 1, ...: the metric at each
  Point params{};                       ///< only of the parameters that it has

  /// Returns the highest step with a report; -1 without.
  [[nodiscard]] int64_t last_step() const { return reports.empty() ? -1 : reports.rbegin()->first; }
};

/// Returns the parameters that `cell` sets; others are skipped.
[[nodiscard]] Point point_of(const Space& space, const Cell& cell);

}  // namespace tare::search
