// Throughput: the samples and the operations of an epoch's training by the second, as columns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tare/callback/callback.h"
#include "tare/callback/flop_count.h"
#include "tare/callback/peak_rates.h"
#include "tare/callback/train_seconds.h"
#include "tare/config/field.h"

namespace tare {

/// Configures Throughput.
struct ThroughputOptions {
  /// Adds the columns `tflops_per_s` and, where the peak is known, `mfu`; the operators of one
  /// batch of a fit are counted.
  bool flops = false;
  /// The most that the device can do, in 1e12 operations by the second, in the precision of the
  /// training; 0: the figure of a known card (peak_rates.h).
  double peak_tflops = 0;
};
void visit_fields(auto& visit, ThroughputOptions& o) {
  visit("flops", o.flops);
  visit("peak_tflops", o.peak_tflops, config::at_least(0));
}

/// Adds the column `samples_per_s` to every epoch: the samples of its training by the seconds that
/// the training took, without the validations. NaN for an epoch that took no time. The end of the
/// training waits for the device, so the work of the last steps is counted.
///
/// With ThroughputOptions::flops also `tflops_per_s`: the floating-point operations that forward
/// and backward need, see FlopCount, by these seconds, in 1e12; and `mfu`, the model FLOP
/// utilisation: their share of what the device can do (Chowdhery et al. 2022, "PaLM", appendix B).
/// They are counted in the first batch of a fit that is trained without an operator that fails, and
/// each sample of the others is taken to need as many as one of that batch. NaN for an epoch before
/// it, and `mfu` for a type in which the rate of the card is not known. The column `mfu` is missing
/// where neither the option nor the name of the device gives a peak. Nothing waits for the device.
class Throughput final : public Callback {
 public:
  /// Throws ConfigError for an option out of range, and for a peak without `flops`.
  explicit Throughput(ThroughputOptions options = {});

  [[nodiscard]] std::string name() const override { return "throughput"; }
  Action before_fit(FitContext& context) override;
  Action before_epoch(FitContext& context) override;
  Action before_batch(FitContext& context) override;
  Action after_backward(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  Action before_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  /// Returns the columns; `mfu` where the option gives the peak, as a card is known in a fit only.
  [[nodiscard]] CallbackFacts facts() const override;

  /// Returns what the counted batch of the last fit needed; unset: none was counted.
  [[nodiscard]] const std::optional<Flops>& counted() const { return counted_; }

 private:
  void add_flops(EpochRow& row, double samples_per_s) const;

  ThroughputOptions options_;
  TrainSeconds seconds_;
  std::optional<PeakRates> rates_;       // of a known card
  std::unique_ptr<FlopCount> counting_;  // in the batch under way
  int64_t samples_ = 0;  // of the batch that is counted, after its backward; 0: none
  std::optional<Flops> counted_;
};

}  // namespace tare
