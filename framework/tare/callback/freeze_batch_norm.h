// FreezeBatchNorm: batch norms that keep their statistics in training.
#pragma once

#include <string>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures FreezeBatchNorm.
struct FreezeBatchNormOptions {
  bool frozen_only = false;  ///< only batch norms of which no parameter is trained
};
void visit_fields(auto& visit, FreezeBatchNormOptions& o) { visit("frozen_only", o.frozen_only); }

/// Sets the batch norms of a model (BatchNorm1d, 2d and 3d of LibTorch) to evaluation mode in
/// training: they normalise by their running means and variances, which stay as they are. Their
/// weights and biases train as before, unless they are frozen. For fine-tuning with batches that
/// are small or of other data. Warns of a model without such a batch norm.
class FreezeBatchNorm final : public Callback {
 public:
  /// Takes the options, see FreezeBatchNormOptions.
  explicit FreezeBatchNorm(FreezeBatchNormOptions options = {}) : options_(options) {}
  [[nodiscard]] std::string name() const override { return "freeze_batch_norm"; }
  Action before_epoch(FitContext& context) override;
  [[nodiscard]] CallbackPtr planned() const override;

 private:
  FreezeBatchNormOptions options_;
};

}  // namespace tare
