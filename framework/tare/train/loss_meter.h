// Sums the losses of batches on their device. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "tare/callback/callback.h"
namespace tare {

/// Holds sums over batches, for their mean loss.
struct LossTotals {
  double sum = 0;       ///< of the losses, each times what it counts
  int64_t samples = 0;  ///< in the batches
  double counted = 0;   ///< what the mean is over

  [[nodiscard]] double mean() const;  ///< NaN where nothing was counted
};

/// Computes the mean loss over several batches, each weighted by what its own mean is over, summed
/// on the device of the losses, so that only reading it waits for the device.
class LossMeter {
 public:
  /// Allocates the sum on a device, so that add() allocates nothing. The meta device has a sum
  /// in the plan of a card.
  void prepare(c10::Device device, bool for_card);
  void reset();
  /// Adds the loss of a batch, which is the mean over `counted`; 0: the batch has no loss.
  void add(const at::Tensor& loss, int64_t samples, double counted);
  /// Returns the sums; waits for the device.
  [[nodiscard]] LossTotals totals() const { return {sum(), samples_, counted_}; }
  [[nodiscard]] double mean() const { return totals().mean(); }  ///< see LossTotals::mean()
  [[nodiscard]] int64_t samples() const { return samples_; }
  [[nodiscard]] double counted() const { return counted_; }
  /// Returns the sum on the device, for a ledger; undefined where the losses are on the host.
  [[nodiscard]] const at::Tensor& device_sum() const { return device_sum_; }
  /// Returns the sum for a checkpoint saved inside an epoch.
  [[nodiscard]] double sum() const;
  void restore(const LossTotals& totals);

 private:
  double sum_ = 0;
  at::Tensor device_sum_;
  int64_t samples_ = 0;
  double counted_ = 0;
};

/// Computes the mean loss over the parts of a batch.
class LossMean {
 public:
  /// Adds that of a part, and releases the part's tensors.
  void add(FitContext& c, double share);
  /// Returns the mean of the parts so far, and starts anew.
  [[nodiscard]] at::Tensor take();
  [[nodiscard]] const at::Tensor& sum() const { return sum_; }

 private:
  at::Tensor sum_;
  double shares_ = 0;
};

}  // namespace tare
