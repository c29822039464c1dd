// Moves what a Learner keeps on its device through the host, into memory without gaps.
#include <algorithm>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/model/stored.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

/// Brings all back to the device; where that refuses, all stays on the host.
void bring_back(LearnerState& p) {
  try {
    p.return_to_device();
  } catch (const c10::OutOfMemoryError&) {
    p.model.to(c10::kCPU);
    int64_t bytes = 0;
    for (auto& on_host : p.state_on_host) {
      on_host.tensor.set_data(on_host.tensor.to(c10::kCPU));
      bytes += static_cast<int64_t>(on_host.tensor.nbytes());
    }
    for (const auto& [name, tensor] : stored_state(p.model))
      bytes += static_cast<int64_t>(tensor.nbytes());
    const auto& backend = memory::backend(p.device);
    throw OutOfMemory(p.device, bytes, backend.usage().allocated_bytes, backend.budget(),
                      "weights and state are whole and lie on the host: free memory on the device, "
                      "then purge() or fit() moves them back");
  }
}

}  // namespace

std::vector<at::Tensor> LearnerState::optimizer_state() const {
  std::vector<at::Tensor> tensors;
  if (!optimizer) return tensors;
  try {
    for (const auto& [name, tensor] : optimizer->state())
      if (std::ranges::find(devices(), tensor.device()) != devices().end())
        tensors.push_back(tensor);
  } catch (const StateError&) {  // of a class of torch::optim that is not known: it stays
  }
  return tensors;
}

std::vector<at::Tensor> LearnerState::weights_and_state() const {
  std::vector<at::Tensor> tensors = optimizer_state();
  for (const auto& [name, tensor] : stored_state(model)) tensors.push_back(tensor);
  return tensors;
}

// The host copies are whole before the first device tensor is let go.
void LearnerState::compact(const std::function<void()>& meanwhile) {
  const std::vector<at::Tensor> originals = weights_and_state();
  std::vector<at::Tensor> host;
  for (const at::Tensor& tensor : originals)
    host.push_back(tensor.detach().to(c10::kCPU, /*non_blocking=*/false, /*copy=*/true));
  if (!device.is_cpu())
    for (const at::Tensor& tensor : optimizer_state())
      state_on_host.push_back({tensor, tensor.device()});
  for (size_t i = 0; i < originals.size(); ++i) originals[i].set_data(host[i]);
  host.clear();  // what `meanwhile` converts is not kept as it was
  for (const c10::Device one : devices()) memory::backend(one).reclaim();
  try {
    if (meanwhile) meanwhile();
  } catch (...) {
    bring_back(*this);
    throw;
  }
  bring_back(*this);
}

}  // namespace tare
