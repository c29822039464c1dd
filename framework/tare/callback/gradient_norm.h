// GradientNorm: mean and largest norm of the gradients of an epoch, as columns of the epochs table.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "tare/callback/callback.h"

namespace tare {

/// Adds the columns `grad_norm_mean` and `grad_norm_max` to every epoch: of the joint 2-norms of
/// all gradients, before they are clipped, of each step that changed the weights. NaN for an epoch
/// without a step. The norms stay on the device until the end of the epoch, so that no step waits.
/// after_backward throws ConfigError where the steps are taken in the backward, which leaves no
/// gradient.
class GradientNorm final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "gradient_norm"; }
  Action before_fit(FitContext& context) override;
  Action before_epoch(FitContext& context) override;
  Action after_backward(FitContext& context) override;
  Action after_step(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.columns = {"grad_norm_mean", "grad_norm_max"}, .needs_gradients = true};
  }
  [[nodiscard]] CallbackPtr planned() const override;
  void purge() override;
  void account(Ledger& ledger) const override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  /// Holds the norms of an epoch on the host.
  struct Norms {
    int64_t epoch = -1;  // of the fit, from 0
    int64_t count = 0;   // steps
    double sum = 0, largest = 0;
  };
  [[nodiscard]] Norms read() const;

  bool reads_ = true;         // not in a planned fit, whose tensors have no values
  Norms norms_;               // their norms while the tensors are undefined
  at::Tensor sum_, largest_;  // float64 scalars on the device, in a fit
  // Of the step under way, made where memory may be refused: in after_step it may not.
  at::Tensor norm_, next_largest_;
};

}  // namespace tare
