// StepInBackward: each parameter is stepped as soon as its gradient is complete.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "tare/optim/optimizer.h"

namespace torch::autograd {
struct PostAccumulateGradHook;
}

namespace tare {

/// Gradients are freed one by one inside the backward, so that never all of them are alive (Lv et
/// al. 2023, "Full Parameter Fine-tuning for Large Language Models with Limited Resources", fuse
/// update and backward the same way). What needs all gradients at once (a joint norm, a scaler,
/// gradients of several batches added up) cannot be had with it, and a backward that fails half-way
/// has stepped some parameters.
class StepInBackward {
 public:
  /// Puts a hook on every parameter of the groups; one that is there is put back at the end.
  /// `optimizer` must outlive it and keep its groups. Throws ConfigError for an optimizer that
  /// cannot step one parameter.
  explicit StepInBackward(Optimizer& optimizer);
  ~StepInBackward();
  StepInBackward(const StepInBackward&) = delete;
  StepInBackward& operator=(const StepInBackward&) = delete;

  /// Runs the backward of a scalar loss and the optimizer's step; gradients are undefined after it.
  /// In other backwards the hooks do nothing.
  void backward(const at::Tensor& loss);

 private:
  class Hook;

  struct Before {
    at::Tensor parameter;
    std::unique_ptr<torch::autograd::PostAccumulateGradHook> hook;
  };

  Optimizer& optimizer_;
  std::vector<Before> before_;
  bool active_ = false;
};

}  // namespace tare
