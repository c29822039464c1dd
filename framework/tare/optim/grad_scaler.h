// GradScaler: keeps float16 gradients from vanishing or overflowing.
#pragma once

#include <cstdint>
#include <vector>

#include "tare/optim/optimizer.h"

namespace tare {

/// Scales losses dynamically (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2):
/// the loss is multiplied by scale(), so that small gradients stay above float16's smallest number;
/// unscale() divides the gradients again. A step whose gradients are not finite is skipped and
/// halves the scale; 2000 steps in a row without one double it. Start and factors are those of
/// PyTorch's GradScaler. A value.
class GradScaler {
 public:
  /// Returns the factor of the loss, > 0.
  [[nodiscard]] double scale() const { return scale_; }
  /// Divides the gradients of all groups by scale(), in place. Returns whether all are finite, for
  /// which it waits for the device. Without effect on meta tensors. Throws OutOfMemory.
  [[nodiscard]] bool unscale(const std::vector<ParameterGroup>& groups) const;
  /// Updates the scale after a step that was taken because its gradients were finite, or skipped
  /// because they were not. Throws StateError when the scale would fall below 2^-14, float16's
  /// smallest normal number: then it is the training that gives no finite gradients, not the scale.
  void update(bool finite);

  /// Returns the finite steps since the scale changed, which a checkpoint stores with the scale.
  [[nodiscard]] int64_t finite_steps() const { return finite_steps_; }
  /// Restores what scale() and finite_steps() returned.
  void restore(double scale, int64_t finite_steps);

 private:
  double scale_ = 65536;
  int64_t finite_steps_ = 0;
};

}  // namespace tare
