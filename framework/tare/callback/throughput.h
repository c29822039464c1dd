// Throughput: the samples that an epoch trains on by the second, as a column of the epochs table.
#pragma once

#include <string>

#include "tare/callback/callback.h"
#include "tare/callback/train_seconds.h"

namespace tare {

/// Adds the column `samples_per_s` to every epoch: the samples of its training by the seconds that
/// the training took, without the validations. NaN for an epoch that took no time. The end of the
/// training waits for the device, so the work of the last steps is counted.
class Throughput final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "throughput"; }
  Action before_epoch(FitContext& context) override;
  Action before_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override { return {.columns = {"samples_per_s"}}; }

 private:
  TrainSeconds seconds_;
};

}  // namespace tare
