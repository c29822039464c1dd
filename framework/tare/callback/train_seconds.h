// TrainSeconds: how long an epoch trained, without its validation. Internal.
#pragma once

#include <optional>

#include "tare/report/run_files.h"

namespace tare {

/// Notes the time of the training of an epoch. Events call it: before_epoch, before_validate, and
/// after_epoch for the rate. The seconds of a row count what was trained before a resume too.
class TrainSeconds {
 public:
  void begin() { seconds_.reset(); }                         ///< in before_epoch
  void end(const EpochRow& row) { seconds_ = row.seconds; }  ///< in before_validate
  /// Returns the samples of an epoch by the seconds of its training; unset without any time.
  [[nodiscard]] std::optional<double> samples_per_s(const EpochRow& row) const {
    const double seconds = seconds_.value_or(row.seconds);
    if (!(seconds > 0)) return std::nullopt;
    return static_cast<double>(row.samples) / seconds;
  }

 private:
  std::optional<double> seconds_;
};

}  // namespace tare
