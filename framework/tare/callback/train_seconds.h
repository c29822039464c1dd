// TrainSeconds: how long an epoch trained, without its validation. Internal.
#pragma once

#include <optional>

#include "tare/callback/callback.h"

namespace tare {

/// Notes the time of the training of an epoch, without its validations. The events of a callback
/// call the method of their name.
class TrainSeconds {
 public:
  void before_epoch() { seconds_.reset(); }
  void before_validate(const FitContext& context) {
    if (!context.inside_epoch) seconds_ = context.row.seconds;
  }
  /// Returns the samples of an epoch by the seconds of its training; unset without any time. For
  /// after_epoch.
  [[nodiscard]] std::optional<double> samples_per_s(const FitContext& context) const {
    const double seconds = seconds_.value_or(context.row.seconds) - context.inside_seconds;
    if (!(seconds > 0)) return std::nullopt;
    return static_cast<double>(context.row.samples) / seconds;
  }

 private:
  std::optional<double> seconds_;  // at the end of the training
};

}  // namespace tare
