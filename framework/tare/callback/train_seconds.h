// TrainSeconds: how long an epoch trained, without its validation. Internal.
#pragma once

#include <optional>

#include "tare/callback/callback.h"

namespace tare {

/// Notes the time of the training of an epoch, without its validations. The events of a callback
/// call the method of their name. The seconds of a row count what was trained before a resume too,
/// with the validations inside the epoch of that process.
class TrainSeconds {
 public:
  void before_epoch() {
    seconds_.reset();
    inside_ = 0;
  }
  void before_validate(const FitContext& context) {
    (context.inside_epoch ? begin_ : seconds_) = context.row.seconds;
  }
  void after_validate(const FitContext& context) {
    if (context.inside_epoch && begin_) inside_ += context.row.seconds - *begin_;
  }
  /// Returns the samples of an epoch by the seconds of its training; unset without any time. For
  /// after_epoch.
  [[nodiscard]] std::optional<double> samples_per_s(const EpochRow& row) const {
    const double seconds = seconds_.value_or(row.seconds) - inside_;
    if (!(seconds > 0)) return std::nullopt;
    return static_cast<double>(row.samples) / seconds;
  }

 private:
  std::optional<double> seconds_;  // at the end of the training
  std::optional<double> begin_;    // of the validation inside the epoch
  double inside_ = 0;              // in validations inside the epoch
};

}  // namespace tare
