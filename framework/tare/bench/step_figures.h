// StepFigures: what a step of a fit takes, and how far that is from the limits of the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/bench/machine_limits.h"
#include "tare/bench/operator_times.h"
#include "tare/learner/learner.h"

namespace tare::bench {

/// Holds what steps of a fit take. Seconds are those of one step.
struct StepFigures {
  int64_t batch = 0;                         ///< samples of a step
  int64_t steps = 0;                         ///< that were measured without watching operators
  double step_s = 0;                         ///< the median; on a card the mean
  double low_s = 0, high_s = 0;              ///< the quartiles; on a card the mean
  double feed_s = 0;                         ///< of it, until the next batch was there: the median
  int64_t watched_steps = 0;                 ///< whose operators were watched
  std::vector<OperatorFigures> operators{};  ///< of the watched steps together
};

/// Trains the Learner for some steps beyond the first ones, which set things up, and for some more
/// whose operators are watched. Needs a training split. `steps` >= 1. Throws what Learner::fit()
/// throws, and StateError where operators are being measured already.
[[nodiscard]] StepFigures measure_steps(Learner& learner, FitOptions options, int64_t steps);

/// Holds a part of a step.
struct StepPart {
  std::string name{};  ///< a class of operators, or what is outside of operators
  double seconds = 0;  ///< of one step
  /// The least that its operators need at the rates of the machine; unset: it has no operators, or
  /// a rate is unknown.
  std::optional<double> limit_s{};
};

/// Holds an operator that takes longer than its limit.
struct Gap {
  OperatorFigures figures{};        ///< of the watched steps together
  double seconds = 0;               ///< of one step
  std::optional<double> limit_s{};  ///< of one step; unset: a rate is unknown
};

/// Compares a step with what the machine can do.
struct StepLimits {
  std::vector<StepPart> parts{};  ///< by falling seconds, which sum up to those of the step
  double limit_s = 0;             ///< of all operators of a step whose limit is known
  std::vector<Gap> gaps{};        ///< the largest, first
};

/// Returns the parts of a step. The limit of an operator is the longer of two times: that of its
/// operations at the rate of products in their type, and that of its bytes at the rate of copies of
/// their size (Williams et al. 2009, "Roofline"). `gaps`: as many operators are listed at most.
[[nodiscard]] StepLimits limits_of(const StepFigures& step, const MachineLimits& machine,
                                   size_t gaps = 8);

}  // namespace tare::bench
