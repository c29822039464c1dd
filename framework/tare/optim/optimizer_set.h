// OptimizerSet: several optimizers of one model, each with parameters, rates and a schedule of its
// own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/optim/fit_schedules.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"

namespace tare {

/// Describes one of several optimizers of a model.
struct NamedOptimizer {
  std::string name{};  ///< in tasks, checkpoints and messages; not empty, without '/'
  /// Names of submodules or parameters, as in LayerGroup: "body" covers "body.0.weight".
  std::vector<std::string> parameters{};
  OptimizerOptions options{};          ///< kind, rate, decay
  OptimizerFactory factory{};          ///< in place of the kind of `options`; may be empty
  std::optional<Schedule> schedule{};  ///< unset: that of the fit
};

/// Throws ConfigError, naming `where`, for names that are empty, not allowed or equal, for options
/// and schedules out of range, for a name in `parameters` that no parameter of the model has, for a
/// parameter of two optimizers, and as check_owners() for the trainable parameters of the model.
void check_optimizers(const std::vector<NamedOptimizer>& all, const Model& model,
                      const std::string& where);
/// Throws ConfigError, naming `where` and the parameters, for parameters that no optimizer has.
void check_owners(const std::vector<NamedOptimizer>& all, const std::vector<Parameter>& trained,
                  const std::string& where);

/// Returns the parameter groups of make_groups() of each optimizer, one optimizer after the other,
/// with ParameterGroup::optimizer set. Optimizers without a trainable parameter have none.
[[nodiscard]] std::vector<ParameterGroup> make_groups_by_optimizer(
    const Model& model, const std::vector<NamedOptimizer>& all);

/// Makes one of several optimizers: prepare(), clear(), state() and account() are of all, and
/// step() is a step of each, in their order. groups() lists the groups of all, with the rates that
/// set_rates() wrote. To change a rate there is without effect: part(name).groups() has the rates
/// of the next step. A state is named "<optimizer>/<buffer>/<parameter>". Not thread-safe.
class OptimizerSet final : public Optimizer {
 public:
  /// Makes the optimizers in `all`, which is not empty, with the groups of
  /// make_groups_by_optimizer(). For `with_tensors` see make_optimizer().
  OptimizerSet(const std::vector<NamedOptimizer>& all, std::vector<ParameterGroup> groups,
               bool with_tensors = false);

  /// Returns the optimizer with that name. Throws ConfigError for a name that none has.
  [[nodiscard]] Optimizer& part(const std::string& name);
  /// Returns the learning rate with which the first optimizer was made.
  [[nodiscard]] double rate() const { return parts_.front().rate; }
  /// Sets rates, momenta and weight decays of step `step` of `steps`. `rates`: of the layer groups,
  /// for the first optimizer; another optimizer has rates in the ratio that the two were made with.
  /// `schedules`: that of the rate is for the optimizers that have none of their own. `bases`: of
  /// groups().
  void set_rates(const std::vector<double>& rates, const FitSchedules& schedules,
                 const std::vector<GroupBase>& bases, int64_t step, int64_t steps);
  /// Whether one of the optimizers has a schedule of its own that sets the momentum.
  [[nodiscard]] bool sets_momentum() const;
  /// Returns the groups with which the optimizers step, in the order of groups().
  [[nodiscard]] std::vector<ParameterGroup*> stepped_groups();

  [[nodiscard]] std::string kind() const override;
  void step() override;
  [[nodiscard]] bool steps_atomically() const override;
  void prepare() override;
  void clear() override;
  [[nodiscard]] std::vector<NamedTensor> state() const override;
  /// Loads states by the names of the optimizers, in any order. It also throws ConfigError, with
  /// the names on both sides, for state of another optimizer, and for that of a parameter that
  /// another of the optimizers has here.
  std::vector<std::string> load_state(const std::vector<NamedTensor>& state) override;
  void check_state(const std::vector<NamedTensor>& state) override;
  StateChange set_groups(std::vector<ParameterGroup> groups) override;
  void account(Ledger& ledger) const override;

 private:
  struct Part {
    std::string name{};
    std::unique_ptr<Optimizer> optimizer{};
    double rate = 0;  ///< that it was made with
    std::optional<MadeSchedule> schedule{};
  };
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::vector<std::vector<NamedTensor>> split(
      const std::vector<NamedTensor>& state) const;

  std::vector<Part> parts_;
};

/// Keeps the parameters of all optimizers but one from gradients in its lifetime: neither their
/// memory nor the time for them is taken.
class TrainOnly {
 public:
  /// Trains only the parameters of the named optimizer; empty: all train.
  TrainOnly(const OptimizerSet& set, const std::string& optimizer);
  ~TrainOnly();
  TrainOnly(const TrainOnly&) = delete;
  TrainOnly& operator=(const TrainOnly&) = delete;

 private:
  std::vector<at::Tensor> others_;
};

}  // namespace tare
