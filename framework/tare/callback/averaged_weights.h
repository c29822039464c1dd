// Ema and Swa: averages of the weights over the steps or epochs of a fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures Ema.
struct EmaOptions {
  double decay = 0.999;  ///< weight of the average in an update, in [0, 1)
  int64_t every = 1;     ///< steps between two updates, >= 1
  int64_t warmup = 0;    ///< steps over which the decay rises from 0 to `decay`, >= 0
  bool restore = true;   ///< the averages become the model's at the end of a fit
};
void visit_fields(auto& visit, EmaOptions& o) {
  visit("decay", o.decay, config::between(0, 0.9999999));
  visit("every", o.every, config::at_least(1));
  visit("warmup", o.warmup, config::at_least(0));
  visit("restore", o.restore);
}

/// Configures Swa.
struct SwaOptions {
  double start =
      0.75;  ///< share of the fit's epochs before the first one in the average, in [0, 1)
  bool restore = true;  ///< the averages become the model's at the end of a fit
};
void visit_fields(auto& visit, SwaOptions& o) {
  visit("start", o.start, config::between(0, 0.9999999));
  visit("restore", o.restore);
}

/// Keeps averages of the parameters that are trained, in float32 unless they are float64, from the
/// beginning of a fit on. Frozen parameters and buffers, such as the running means of a batch norm,
/// are not averaged: the model's own are used.
///
/// Validations in the fit see the averages. At the end of a fit that is whole, or that a callback
/// ended, they become the model's weights, with `restore`, and their memory is free. After an
/// error or an interrupt the model has the weights that are trained, and resume() continues. Where
/// a callback restores the weights of a checkpoint, such as SaveBest, the model gets the averages
/// of that checkpoint. A new fit begins new averages. Not for two of them in one fit.
class AveragedWeights : public Callback {
 public:
  Action before_fit(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  bool lend_weights(Model& model) override;
  void return_weights(Model& model) noexcept override;
  void after_restore(Model& model, const std::vector<NamedTensor>& tensors) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.lends_weights = true, .keeps_lent = restore_};
  }
  void purge() override;
  void account(Ledger& ledger) const override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;
  [[nodiscard]] std::vector<NamedTensor> tensors() const override;
  void load_tensors(const std::vector<NamedTensor>& tensors) override;
  /// Returns the averages of the fit under the names of their parameters, also those that stand for
  /// no weights yet, which tensors() lacks.
  [[nodiscard]] std::vector<NamedTensor> averages() const;
  /// Returns how often weights were added to the averages of the fit.
  [[nodiscard]] int64_t updates() const { return updates_; }

 protected:
  /// Takes `restore` as EmaOptions::restore.
  explicit AveragedWeights(bool restore) : restore_(restore) {}
  /// Multiplies the averages by `decay` and adds the weights times 1 - decay. Allocates nothing on
  /// the device for weights of the averages' types.
  void update(const Model& model, double decay);
  /// Whether the averages hold weights that they may stand for.
  [[nodiscard]] virtual bool is_ready() const = 0;

  int64_t updates_ = 0;        ///< see updates()
  int64_t epochs_ = 0;         ///< epochs of the fit that were looked at
  bool loaded_state_ = false;  ///< load_state() was called since the last fit began
  bool is_planned_ = false;    ///< of a plan, whose fit may be shorter

 private:
  struct Average {
    size_t parameter = 0;  // index into Model::parameters()
    at::Tensor tensor{};
  };
  void begin(const Model& model);
  void give_to(Model& model);
  [[nodiscard]] at::Tensor loaded(const Parameter& parameter) const;

  bool restore_;
  bool restored_ = false;  // from a checkpoint, since the fit began
  std::vector<Average> averages_;
  /// A scalar of each type of the averages, for the factor of an update: a number would take memory
  /// in every update, which could then be refused half-way.
  std::vector<at::Tensor> decays_;
  std::vector<std::string> names_;     // of their parameters
  std::vector<NamedTensor> loaded_;    // of a checkpoint, until the fit begins
  std::vector<at::Tensor> originals_;  // storages of the model's own weights, in a validation
};

/// Averages exponentially: after each `every` steps, average = d average + (1 - d) weights, with
/// d = decay, and in step s <= warmup d = decay (s - 1) / warmup (Polyak & Juditsky 1992, as
/// torch.optim.swa_utils.get_ema_avg_fn).
class Ema final : public AveragedWeights {
 public:
  /// Throws ConfigError for an option out of range.
  explicit Ema(EmaOptions options = {});
  [[nodiscard]] std::string name() const override { return "ema"; }
  Action after_step(FitContext& context) override;
  /// Warns where most of the average is the weights from before the fit.
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackPtr planned() const override;

 private:
  [[nodiscard]] bool is_ready() const override { return true; }
  EmaOptions options_;
};

/// Averages the weights at the ends of epochs, each with the same weight, from the epoch on before
/// which the share `start` of the fit's epochs lies (Izmailov et al. 2018, stochastic weight
/// averaging). Validations before see the weights that are trained; one inside an epoch sees the
/// averages as the epoch before has left them.
class Swa final : public AveragedWeights {
 public:
  /// Throws ConfigError for an option out of range.
  explicit Swa(SwaOptions options = {});
  [[nodiscard]] std::string name() const override { return "swa"; }
  /// Throws ConfigError for a `start` above 0 where the clock alone ends the fit.
  Action before_fit(FitContext& context) override;
  Action before_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  /// Warns where the fit ended before the averages began.
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackPtr planned() const override;

 private:
  [[nodiscard]] bool is_ready() const override { return updates_ > 0; }
  void look_at(int64_t epoch, const FitContext& context);
  SwaOptions options_;
};

}  // namespace tare
