// What a step changes before its optimizer does: put back when the step fails.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// The buffers of a model (running statistics) and the random generators of the host and its
/// device, as they were before a step. Room for the buffers is made once, so that taking it
/// allocates nothing; on a device nothing is waited for.
class StepSnapshot {
 public:
  /// Makes room for the buffers of `model`, which must outlive this. Throws OutOfMemory.
  void prepare(const Model& model, c10::Device device);
  void take();
  /// Puts back what take() saw; nothing where it was dropped or never taken.
  void restore();
  /// The step is whole: what it changed stays.
  void drop() { taken_ = false; }
  [[nodiscard]] bool taken() const { return taken_; }
  /// The copies, for a ledger.
  [[nodiscard]] const std::vector<at::Tensor>& copies() const { return copies_; }

 private:
  // The state of the host's generator, with the second half of a pair of normal numbers.
  struct Host {
    at::mt19937 engine{};
    std::optional<float> next_float{};
    std::optional<double> next_double{};
  };

  void take_host();
  void restore_host() const;

  std::vector<at::Tensor> buffers_, copies_;
  Host host_;
  c10::Device device_ = c10::kCPU;
  uint64_t device_seed_ = 0, device_offset_ = 0;
  bool taken_ = false;
};

}  // namespace tare
