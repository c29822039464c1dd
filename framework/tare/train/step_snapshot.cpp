// Keeps buffers and generators of a step, and puts them back.
#include "tare/train/step_snapshot.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <utility>

namespace tare {

void StepSnapshot::prepare(const Model& model, std::vector<c10::Device> devices) {
  devices_ = std::move(devices);
  for (const auto& [name, tensor] : model.buffers()) {
    buffers_.push_back(tensor);
    copies_.push_back(at::empty_like(tensor));
  }
}

void StepSnapshot::take(bool with_buffers) {
  has_buffers_ = false;
  if (with_buffers) take_buffers();
  generators_.take(devices_);
  taken_ = true;
}

void StepSnapshot::take_buffers() {
  if (std::exchange(has_buffers_, true) || buffers_.empty()) return;
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < buffers_.size(); ++i) copies_[i].copy_(buffers_[i], /*non_blocking=*/true);
}

void StepSnapshot::restore() {
  if (!taken_) return;
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; has_buffers_ && i < buffers_.size(); ++i)
    buffers_[i].copy_(copies_[i], /*non_blocking=*/true);
  generators_.restore();
  taken_ = false;
}

}  // namespace tare
