// Number formats of a model's computation: autocast as a scope.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace tare {

/// This thread's autocast settings: whether operators on a device type take their inputs as `dtype`
/// where that is safe (matrix products and convolutions; sums and losses stay float32). A value.
struct AutocastState {
  c10::DeviceType device = c10::kCPU;
  bool enabled = false;
  c10::ScalarType dtype = c10::kBFloat16;
  bool cache = true;  ///< whether weights that were cast are kept until the outermost scope ends

  [[nodiscard]] static AutocastState of(c10::DeviceType device);
};

/// Sets autocast on this thread and restores what was set before; the end of the outermost scope
/// frees the weights that were cast. Backward passes need no scope: each operator's backward runs
/// in the type of its forward. LibTorch has the functions, not the guard.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState before_;
};

}  // namespace tare
