// StepSnapshot: restores what a failed step changed before its optimizer ran. Internal.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// A copy of the states of the random generators of host and device. Allocates no tensor and does
/// not wait for the device.
class GeneratorSnapshot {
 public:
  void take(c10::Device device);
  /// Restores what take() copied.
  void restore() const;

 private:
  // The state of the host's generator, with the second half of a pair of normal numbers.
  struct Host {
    at::mt19937 engine{};
    std::optional<float> next_float{};
    std::optional<double> next_double{};
  };

  void take_host();
  void restore_host() const;

  Host host_;
  c10::Device device_ = c10::kCPU;
  uint64_t device_seed_ = 0, device_offset_ = 0;
};

/// Restores the generators at its end.
class GeneratorScope {
 public:
  explicit GeneratorScope(c10::Device device) { before_.take(device); }
  ~GeneratorScope() { before_.restore(); }
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  GeneratorSnapshot before_;
};

/// A copy of a model's buffers (running statistics) and of the random generators of host and
/// device, as they were before a step. Memory is allocated once, by prepare(). Does not wait for
/// the device.
class StepSnapshot {
 public:
  /// Allocates copies of the buffers of `model`, which must outlive this. Throws OutOfMemory.
  void prepare(const Model& model, c10::Device device);
  /// Copies buffers and generator states; allocates nothing.
  void take();
  /// Restores what take() copied; does nothing if it was dropped or never taken.
  void restore();
  /// The step succeeded: what it changed stays.
  void drop() { taken_ = false; }
  [[nodiscard]] bool taken() const { return taken_; }
  /// The copies, for a ledger.
  [[nodiscard]] const std::vector<at::Tensor>& copies() const { return copies_; }

 private:
  std::vector<at::Tensor> buffers_, copies_;
  GeneratorSnapshot generators_;
  c10::Device device_ = c10::kCPU;
  bool taken_ = false;
};

}  // namespace tare
