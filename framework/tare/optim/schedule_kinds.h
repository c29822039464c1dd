// The options of the built-in kinds of schedules, which a recipe gives in `schedule.options`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/optim/schedule.h"

namespace tare {

/// Options of `cosine`: half a cosine in each of the cycles (Loshchilov and Hutter 2017, "SGDR").
struct CosineSchedule {
  int64_t cycles = 1;  ///< equally long; each begins at the peak rate, >= 1
};
void visit_fields(auto& visit, CosineSchedule& o) {
  visit("cycles", o.cycles, config::between(1, 1e6));
}

/// Options of `polynomial`: final_factor + (1 - final_factor) (1 - p)^power.
struct PolynomialSchedule {
  double power = 1;  ///< > 0; 1: a straight line
};
void visit_fields(auto& visit, PolynomialSchedule& o) { visit("power", o.power, config::above(0)); }

/// Options of `step`: the rate is multiplied by `gamma` at milestones.
struct StepSchedule {
  double gamma = 0.1;                            ///< factor, > 0
  std::vector<double> milestones = {0.5, 0.75};  ///< progress, in (0, 1), ascending
  double every = 0;  ///< a milestone after each such share of the steps; 0: `milestones`
};
void visit_fields(auto& visit, StepSchedule& o) {
  visit("gamma", o.gamma, config::above(0));
  visit("milestones", o.milestones, config::between(0, 1));
  visit("every", o.every, config::between(0, 1));
}

/// Options of `piecewise`: straight lines between points; before the first and behind the last one
/// the factor is theirs.
struct PiecewiseSchedule {
  /// Pairs of progress, in [0, 1] and ascending, and factor, >= 0.
  std::vector<std::vector<double>> points = {{0, 1}, {1, 0}};
};
void visit_fields(auto& visit, PiecewiseSchedule& o) {
  visit("points", o.points, config::at_least(0));
}

/// Options of `wsd` (Hu et al. 2024, "MiniCPM"): warm-up, stable, decay. The warm-up is that of
/// every schedule.
struct WsdSchedule {
  double decay = 0.2;            ///< share of the steps after the warm-up, in (0, 1]
  std::string shape = "linear";  ///< linear, cosine or sqrt: 1 - sqrt(p), all down to final_factor
};
void visit_fields(auto& visit, WsdSchedule& o) {
  visit("decay", o.decay, config::between(0, 1));
  visit("shape", o.shape, config::one_of({"linear", "cosine", "sqrt"}));
}

/// Describes a part of `sequence`.
struct SchedulePart {
  std::string kind = "constant";  ///< any but one_cycle and sequence
  double share = 1;               ///< of the steps, relative to the other parts' shares, > 0
  double factor = 1;              ///< by which the part's curve is multiplied, >= 0
  double final_factor = 0;        ///< as Schedule::final_factor
  config::OwnOptions options{};   ///< of the kind
};
void visit_fields(auto& visit, SchedulePart& o) {
  visit("kind", o.kind);
  visit("share", o.share, config::above(0));
  visit("factor", o.factor, config::at_least(0));
  visit("final_factor", o.final_factor, config::between(0, 1));
  visit("options", o.options);
}

/// Options of `sequence`: schedules one after the other, each with progress of its own.
struct SequenceSchedule {
  std::vector<SchedulePart> parts = {{.kind = "constant"}, {.kind = "linear"}};  ///< at least one
};
void visit_fields(auto& visit, SequenceSchedule& o) { visit("parts", o.parts); }

}  // namespace tare
