// Learning-rate schedules as pure functions of the step: no scheduler object to save or to step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/config/registry.h"
#include "tare/optim/lr_find.h"

namespace tare {

/// Gives learning rates over the layer groups: `from` for the first (input side), `to` for the
/// last, in geometric steps.
struct LrRange {
  double from = 1e-5, to = 1e-3;  ///< learning rates, > 0
  bool operator==(const LrRange&) const = default;
};
void visit_fields(auto& visit, LrRange& r) {
  visit("from", r.from, config::above(0));
  visit("to", r.to, config::above(0));
}
/// Makes a LrRange: `lr_range(1e-5, 1e-3)`.
[[nodiscard]] inline LrRange lr_range(double from, double to) { return {from, to}; }

/// Holds one rate for all layer groups, a range, or a search that a fit begins with. In YAML:
/// `1e-3`, `{from: 1e-5, to: 1e-3}`, and `find` or `{find: {steps: 200}}`.
struct LearningRate : std::variant<double, LrRange, LrFindOptions> {
  using std::variant<double, LrRange, LrFindOptions>::variant;

  /// Returns the search; nullptr: the rates are given.
  [[nodiscard]] const LrFindOptions* search() const { return std::get_if<LrFindOptions>(this); }
  /// Returns the rate of each of `groups` >= 1 layer groups; with one group a range gives `to`.
  /// Throws ConfigError unless every rate is finite and > 0, and for a search.
  [[nodiscard]] std::vector<double> per_group(int64_t groups) const;
};
void from_node(const config::Node& node, LearningRate& value);
[[nodiscard]] config::Node to_node(const LearningRate& value);

/// Configures the one-cycle schedule of fastai v1 (Smith and Topin 2017, "Super-Convergence"):
/// cosine rise, cosine fall.
struct OneCycle {
  double div = 25;                ///< the first rate is max / div, >= 1
  double pct_start = 0.3;         ///< share of the steps in which the rate rises, in (0, 1)
  double final_div = 0;           ///< the rate falls towards max / final_div; 0: div * 1e4
  double momentum_start = 0.95;   ///< at the first step, and nearly at the last
  double momentum_lowest = 0.85;  ///< at the peak of the rate

  bool operator==(const OneCycle&) const = default;
};
void visit_fields(auto& visit, OneCycle& o) {
  visit("div", o.div, config::at_least(1));
  visit("pct_start", o.pct_start, config::between(0, 1));
  visit("final_div", o.final_div, config::at_least(0));
  visit("momentum_start", o.momentum_start, config::between(0, 0.9999999));
  visit("momentum_lowest", o.momentum_lowest, config::between(0, 0.9999999));
}

/// Returns the factor on the peak rate at `step` of `total` >= 1, 0 <= step <= total. It is exactly
/// 1 at step max(1, int(total * pct_start)).
[[nodiscard]] double one_cycle_factor(int64_t step, int64_t total, const OneCycle& shape = {});
/// Returns one_cycle_factor times `max_lr`.
[[nodiscard]] double one_cycle_lr(int64_t step, int64_t total, double max_lr,
                                  const OneCycle& shape = {});
/// Returns the momentum (beta1 of Adam): momentum_start -> momentum_lowest -> momentum_start.
[[nodiscard]] double one_cycle_momentum(int64_t step, int64_t total, const OneCycle& shape = {});

/// Returns the factor on the peak rate at a progress in [0, 1] after the warm-up; `final_factor` is
/// the schedule's. A pure function. It must be finite and >= 0. Progress is step / steps, so it
/// stays below 1 in a fit.
using ScheduleCurve = std::function<double(double progress, double final_factor)>;

namespace schedules {
/// Holds the kinds of schedules. A program adds its own curves:
///   schedules::registry().add("root", "divides by the root of progress", [] { return curve; });
/// Options of its own are those of the entry, and a recipe has them under `schedule.options`.
/// schedule_kinds.h has the options of the built-in kinds.
using Registry = config::Registry<ScheduleCurve()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace schedules

/// Describes how the learning rate, and with one_cycle the momentum, changes over a fit; depends on
/// (step, total) only.
///
/// | kind        | factor on the rate at progress p = step / total, after the warm-up |
/// |-------------|--------------------------------------------------------------------|
/// | constant    | 1                                                                  |
/// | linear      | 1 -> final_factor in a straight line                               |
/// | cosine      | 1 -> final_factor along half a cosine, once or in several cycles   |
/// | exponential | 1 -> final_factor, the same ratio each step; final_factor > 0      |
/// | polynomial  | 1 -> final_factor by a power of what remains                       |
/// | wsd         | 1, then 1 -> final_factor in the last share of the steps           |
/// | step        | 1, times gamma at each milestone                                   |
/// | piecewise   | straight lines between points                                      |
/// | sequence    | other kinds, one after the other                                   |
/// | one_cycle   | `one_cycle`; has its own rise, so no warm-up                       |
struct Schedule {
  std::string kind = "constant";  ///< of the table above
  double warmup = 0;        ///< share of the steps, in [0, 1), of a linear rise from near 0 to 1
  double final_factor = 0;  ///< where linear, cosine, exponential, polynomial and wsd end, [0, 1]
  OneCycle one_cycle{};     ///< the curve of the kind `one_cycle`
  /// Holds the options of the kind's own, such as `{config::to_node(StepSchedule{.gamma = 0.5})}`.
  config::OwnOptions options{};

  bool operator==(const Schedule&) const = default;

  /// Returns the factor on each group's rate, for 0 <= step < total.
  [[nodiscard]] double factor(int64_t step, int64_t total) const;
  /// Returns the momentum for this step; unset: the schedule leaves it as it is.
  [[nodiscard]] std::optional<double> momentum(int64_t step, int64_t total) const;
  /// Throws ConfigError for values out of range or that contradict each other.
  void check() const;
};
void visit_fields(auto& visit, Schedule& s) {
  visit("kind", s.kind, config::entry_of(schedules::registry().names()));
  visit("warmup", s.warmup, config::between(0, 0.9999999));
  visit("final_factor", s.final_factor, config::between(0, 1));
  visit("one_cycle", s.one_cycle);
  visit("options", s.options);
}

/// Holds a schedule with its curve made, to be asked in each step.
class MadeSchedule {
 public:
  /// Makes the curve. Throws ConfigError for an unknown kind and for its options.
  explicit MadeSchedule(const Schedule& schedule);
  /// Returns what Schedule::factor() returns.
  [[nodiscard]] double factor(int64_t step, int64_t total) const;
  /// Returns what Schedule::momentum() returns.
  [[nodiscard]] std::optional<double> momentum(int64_t step, int64_t total) const;
  /// Whether momentum() returns one.
  [[nodiscard]] bool sets_momentum() const { return one_cycle_.has_value(); }

 private:
  double warmup_, final_factor_;
  std::optional<OneCycle> one_cycle_;  // of that kind
  ScheduleCurve curve_;                // empty: constant, or one_cycle
};

/// Whether a built-in kind ends at Schedule::final_factor; true for a kind that a program adds.
[[nodiscard]] bool has_final_factor(const std::string& kind);

}  // namespace tare
