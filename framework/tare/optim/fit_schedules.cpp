// Applies the schedules of a fit to the groups of an optimizer.
#include "tare/optim/fit_schedules.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare {

Schedule HyperSchedule::schedule() const {
  return {.kind = kind, .warmup = warmup, .final_factor = final_factor, .options = options};
}

namespace {

void check_one(const std::optional<HyperSchedule>& one, const char* name) {
  if (!one) return;
  try {
    if (one->kind == "one_cycle")
      throw ConfigError("schedules", "kind", "is a schedule of the rate", "another kind",
                        one->kind);
    one->schedule().check();
  } catch (const ConfigError& error) {
    throw error.within(name, error.source());
  }
}

std::optional<MadeSchedule> made(const std::optional<HyperSchedule>& given) {
  if (!given) return std::nullopt;
  return MadeSchedule(given->schedule());
}

}  // namespace

void HyperSchedules::check(const Schedule& rate) const {
  check_one(momentum, "momentum");
  check_one(beta2, "beta2");
  check_one(weight_decay, "weight_decay");
  if (momentum && rate.kind == "one_cycle")
    throw ConfigError("schedules", "momentum", "is set by the one_cycle schedule of the rate",
                      "another schedule, or one_cycle.momentum_start and momentum_lowest",
                      momentum->kind);
}

void check_effect(const HyperSchedules& schedules, const Optimizer& optimizer,
                  const std::string& where) {
  const auto require = [&](bool given, const char* name, const char* shown, const auto& value) {
    if (!given || std::ranges::any_of(optimizer.groups(), [&](const ParameterGroup& group) {
          return value(group) > 0;
        }))
      return;
    throw ConfigError(
        where, std::string("schedules.") + name,
        "has no effect, because the optimizer " + optimizer.kind() + " has a " + shown + " of 0",
        "no such schedule, or a value above 0 in the optimizer", "a schedule");
  };
  require(schedules.momentum.has_value(), "momentum", "momentum",
          [](const ParameterGroup& group) { return group.momentum; });
  require(schedules.beta2.has_value(), "beta2", "beta2",
          [](const ParameterGroup& group) { return group.beta2.value_or(0); });
  require(schedules.weight_decay.has_value(), "weight_decay", "weight decay",
          [](const ParameterGroup& group) { return group.weight_decay; });
}

void check_bounds(const HyperSchedules& schedules, double momentum, std::optional<double> beta2) {
  constexpr int64_t kPlaces = 1000;
  const auto check = [](const std::optional<HyperSchedule>& one, const char* name, double base) {
    if (!one) return;
    const MadeSchedule made(one->schedule());
    for (int64_t step = 0; step < kPlaces; ++step) {
      const double value = base * made.factor(step, kPlaces);
      if (value < 1) continue;
      throw ConfigError("schedules", name,
                        "brings the value from " + config::number_text(base) + " to " +
                            config::number_text(value) + " at " +
                            std::to_string(step * 100 / kPlaces) + " % of the fit",
                        "factors with which it stays below 1", one->kind);
    }
  };
  check(schedules.momentum, "momentum", momentum);
  check(schedules.beta2, "beta2", beta2.value_or(0));
}

FitSchedules::FitSchedules(const Schedule& rate, const HyperSchedules& others)
    : rate_(rate),
      momentum_(made(others.momentum)),
      beta2_(made(others.beta2)),
      weight_decay_(made(others.weight_decay)) {}

FitSchedules::Step FitSchedules::at(int64_t step, int64_t steps, const MadeSchedule* own) const {
  const MadeSchedule& rate = own ? *own : rate_;
  Step now{.rate = rate.factor(step, steps), .one_cycle_momentum = rate.momentum(step, steps)};
  if (momentum_) now.momentum = momentum_->factor(step, steps);
  if (beta2_) now.beta2 = beta2_->factor(step, steps);
  if (weight_decay_) now.weight_decay = weight_decay_->factor(step, steps);
  return now;
}

void set_values(ParameterGroup& group, double rate, const FitSchedules::Step& now,
                const GroupBase& base) {
  group.lr = rate * now.rate;
  if (now.one_cycle_momentum && group.momentum > 0) group.momentum = *now.one_cycle_momentum;
  if (now.momentum) group.momentum = base.momentum * *now.momentum;
  if (now.beta2 && base.beta2) group.beta2 = *base.beta2 * *now.beta2;
  if (now.weight_decay) group.weight_decay = base.weight_decay * *now.weight_decay;
}

}  // namespace tare
