// The schedules of a fit: of the rate, and of momentum, beta2 and weight decay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"

namespace tare {

/// Describes how momentum, beta2 or weight decay changes over a fit, as a Schedule does for the
/// rate: the factor multiplies the value that the optimizer was made with.
struct HyperSchedule {
  std::string kind = "constant";  ///< any but one_cycle, see Schedule
  double warmup = 0;              ///< see Schedule
  double final_factor = 0;        ///< see Schedule
  config::OwnOptions options{};   ///< see Schedule
  bool operator==(const HyperSchedule&) const = default;
  /// Returns the schedule with these values.
  [[nodiscard]] Schedule schedule() const;
};
void visit_fields(auto& visit, HyperSchedule& s) {
  visit("kind", s.kind, config::entry_of(schedules::registry().names()));
  visit("warmup", s.warmup, config::between(0, 0.9999999));
  visit("final_factor", s.final_factor, config::between(0, 1));
  visit("options", s.options);
}

/// Names the schedules of a fit beside that of its rate. Unset: the value stays.
struct HyperSchedules {
  std::optional<HyperSchedule> momentum{};      ///< beta1 of adam, adamw and nadam
  std::optional<HyperSchedule> beta2{};         ///< of kinds that have it
  std::optional<HyperSchedule> weight_decay{};  ///< of the groups that have one
  bool operator==(const HyperSchedules&) const = default;
  /// Whether one of them is set.
  [[nodiscard]] bool any() const { return momentum || beta2 || weight_decay; }
  /// Throws ConfigError, with the name of the value in front of the field, for a schedule
  /// that check() of a Schedule refuses, for the kind one_cycle, and for a schedule of the momentum
  /// beside a `rate` of the kind one_cycle, which sets the momentum itself.
  void check(const Schedule& rate) const;
};
void visit_fields(auto& visit, HyperSchedules& s) {
  visit("momentum", s.momentum);
  visit("beta2", s.beta2);
  visit("weight_decay", s.weight_decay);
}

/// Throws ConfigError, naming `where`, for a schedule of a value that no group has or that is 0 in
/// all groups, so that the schedule would have no effect.
void check_effect(const HyperSchedules& schedules, const Optimizer& optimizer,
                  const std::string& where);

/// Throws ConfigError for a schedule that brings a momentum or beta2 of these values to 1 or above,
/// where an average never forgets or grows; it is looked at in 1,000 places. `beta2`: unset, there
/// is none.
void check_bounds(const HyperSchedules& schedules, double momentum, std::optional<double> beta2);

/// Holds the values that an optimizer's group was made with.
struct GroupBase {
  double momentum = 0;            ///< or the first beta of an Adam
  std::optional<double> beta2{};  ///< as ParameterGroup::beta2
  double weight_decay = 0;        ///< as ParameterGroup::weight_decay
};

/// Holds the schedules of a fit, with their curves made.
class FitSchedules {
 public:
  /// Makes the curves. Throws ConfigError for schedules that cannot be made.
  FitSchedules(const Schedule& rate, const HyperSchedules& others);
  /// Holds the values of one step; what is unset stays as it is.
  struct Step {
    double rate = 1;                             ///< factor of the learning rate
    std::optional<double> one_cycle_momentum{};  ///< the momentum itself, which one_cycle sets
    std::optional<double> momentum{};            ///< factor of the momentum
    std::optional<double> beta2{};               ///< factor of beta2
    std::optional<double> weight_decay{};        ///< factor of the weight decay
  };
  /// Returns the values of step `step` of `steps`. `own`: the schedule of the rate of one of
  /// several optimizers; nullptr: that of the fit.
  [[nodiscard]] Step at(int64_t step, int64_t steps, const MadeSchedule* own = nullptr) const;
  /// Whether a step sets the momentum.
  [[nodiscard]] bool sets_momentum() const { return momentum_ || rate_.sets_momentum(); }
  /// Whether a step sets beta2.
  [[nodiscard]] bool sets_beta2() const { return beta2_.has_value(); }
  /// Whether a step sets the weight decay.
  [[nodiscard]] bool sets_weight_decay() const { return weight_decay_.has_value(); }

 private:
  MadeSchedule rate_;
  std::optional<MadeSchedule> momentum_, beta2_, weight_decay_;
};

/// Sets the values of a group; `rate` is its own before the factor. A group that was made without
/// momentum or beta2 stays so.
void set_values(ParameterGroup& group, double rate, const FitSchedules::Step& now,
                const GroupBase& base);

/// Remembers the values that the groups of an optimizer have, and puts back, at its end, those that
/// schedules change.
class GroupBases {
 public:
  /// Takes the values; `optimizer` outlives it.
  GroupBases(Optimizer& optimizer, const FitSchedules& schedules);
  ~GroupBases();
  GroupBases(const GroupBases&) = delete;
  GroupBases& operator=(const GroupBases&) = delete;
  /// Returns the values of the groups, in their order.
  [[nodiscard]] const std::vector<GroupBase>& values() const { return values_; }

 private:
  Optimizer& optimizer_;
  bool momentum_, beta2_, weight_decay_;  // whether they are put back
  std::vector<GroupBase> values_;
};

}  // namespace tare
