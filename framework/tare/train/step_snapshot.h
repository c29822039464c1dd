// StepSnapshot: restores what a failed step changed before its optimizer ran. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tare/model/generators.h"
#include "tare/model/model.h"

namespace tare {

/// Copies a model's buffers (running statistics) and the states of the random generators of host
/// and devices, as they are before a step. Memory is allocated once, by prepare(). Does not wait
/// for a device.
class StepSnapshot {
 public:
  /// Allocates copies of the buffers of `model`, which must outlive this. Throws OutOfMemory.
  void prepare(const Model& model, std::vector<c10::Device> devices);
  /// Copies buffers and generator states; allocates nothing. `with_buffers`: false leaves the
  /// buffers to take_buffers(), for a step that may turn out not to need them.
  void take(bool with_buffers = true);
  /// Copies the buffers, unless take() has.
  void take_buffers();
  /// Restores what take() copied; does nothing if it was dropped or never taken.
  void restore();
  /// Restores the generators alone, for a checkpoint of the position before the step.
  void restore_generators() const { generators_.restore(); }
  /// Drops the snapshot after a step that succeeded: what it changed stays.
  void drop() { taken_ = false; }
  [[nodiscard]] bool taken() const { return taken_; }
  /// Whether the copies of the buffers are those from before the step.
  [[nodiscard]] bool has_buffers() const { return taken_ && has_buffers_; }
  /// Returns the copies, for a ledger.
  [[nodiscard]] const std::vector<at::Tensor>& copies() const { return copies_; }

 private:
  std::vector<at::Tensor> buffers_, copies_;
  GeneratorSnapshot generators_;
  std::vector<c10::Device> devices_{c10::kCPU};
  bool taken_ = false, has_buffers_ = false;
};

}  // namespace tare
