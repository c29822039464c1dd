// Recorder: loss, learning rate and momentum of every step.
#pragma once

#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Describes one training step as the recorder saw it.
struct StepRecord {
  double loss = 0;              ///< of the batch, before its step
  double lr = 0, momentum = 0;  ///< of the last parameter group
};

/// Keeps a StepRecord for each batch that has a loss, over all fits until clear(). A loss on the
/// host is read at once; one on a device is kept as a tensor and read in groups of kBunch, so that
/// it does not wait at every step. Also computes the exponentially smoothed loss (beta 0.98,
/// bias-corrected), which fastai shows on its progress line.
class Recorder final : public Callback {
 public:
  static constexpr size_t kBunch = 64;  ///< losses that are read from a device at a time

  [[nodiscard]] std::string name() const override { return "recorder"; }
  Action after_batch(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  void purge() override { flush(); }
  void account(Ledger& ledger) const override;

  /// Returns all steps so far. Waits for the device if some losses have not been read yet.
  [[nodiscard]] const std::vector<StepRecord>& steps();
  /// Returns smoothed loss after the last step read; NaN before the first.
  [[nodiscard]] double smooth_loss() const;
  void clear();  ///< forgets all steps

 private:
  void flush();
  void add(double loss);

  std::vector<StepRecord> steps_;
  size_t read_ = 0;                  // steps whose loss is a number already
  std::vector<at::Tensor> pending_;  // detached scalars of the last steps, oldest first
  double average_ = 0, weight_ = 0;  // weight_ = 1 - beta^steps
};

}  // namespace tare
