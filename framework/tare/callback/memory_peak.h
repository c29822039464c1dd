// MemoryPeak: what held the memory at the largest moment of a fit, by category.
#pragma once

#include <optional>
#include <string>

#include "tare/callback/callback.h"
#include "tare/memory/snapshot.h"

namespace tare {

/// Looks at the Learner's device in after_loss, after_backward and after_step and keeps a snapshot
/// of the moment with the most allocated bytes. That is not quite the peak, which lies between two
/// events: the temporary memory of single operators is missing. A look costs one read of a counter,
/// a new highest moment one snapshot. Keeps no tensor.
class MemoryPeak final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "memory_peak"; }
  Action before_fit(FitContext& context) override;
  Action after_loss(FitContext& context) override { return look(context, Event::after_loss); }
  Action after_backward(FitContext& context) override {
    return look(context, Event::after_backward);
  }
  Action after_step(FitContext& context) override { return look(context, Event::after_step); }

  /// Returns the snapshot at the peak of the last fit; unset before its first step.
  [[nodiscard]] const std::optional<memory::Snapshot>& snapshot() const { return snapshot_; }
  /// Returns "largest after_loss, 40.1 MiB: parameters 3.1 MiB, ..., unexplained 0 B"; empty
  /// without a snapshot.
  [[nodiscard]] std::string str() const;

 private:
  Action look(const FitContext& context, Event event);

  std::optional<memory::Snapshot> snapshot_;
  Event event_ = Event::after_loss;
};

}  // namespace tare
