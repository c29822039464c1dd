// Which runs of a sweep end early, as options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tare/config/field.h"

namespace tare::search {

/// A number of steps, at least 1, or `auto`.
struct StepCount {
  std::optional<int64_t> steps{};  ///< unset: auto
};
void from_node(const config::Node& node, StepCount& value);
[[nodiscard]] config::Node to_node(const StepCount& value);

/// Successive halving. A step is one report of the metric, an epoch, and counts from 1: a trial's
/// report of step k was made after k epochs.
struct PrunerOptions {
  std::string type = "none";  ///< none | asha | asha_promotion | hyperband
  StepCount min_resource{};   ///< steps to the first rung; auto: a hundredth of the longest
                              ///< complete trial, which has to come first; hyperband: 1
  StepCount max_resource{};   ///< hyperband: steps of a whole run; auto: of a complete trial
  std::optional<int64_t> reduction_factor{};  ///< one of so many continues; unset: 4, hyperband 3
  int64_t min_early_stopping_rate = 0;  ///< asha: the first rung is at min_resource * factor^rate
  int64_t bootstrap_count = 0;          ///< the first trials at each rung end there; not with auto
};
void visit_fields(config::Visitor& visit, PrunerOptions& o);

/// Throws ConfigError for fields that contradict each other: a bootstrap_count with an `auto` that
/// the type uses, a max_resource below min_resource.
void check(const PrunerOptions& options);

}  // namespace tare::search
