// Snapshots of the random generators of host and device, cheap enough to take at each step.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>
#include <c10/core/Device.h>

#include <optional>

#include "tare/memory/device_traits.h"

namespace tare {

/// Holds a copy of the states of LibTorch's default generators of the host and of a device, in 2.5
/// KiB; the backend of the device gives the state of the device. Allocates no tensor and does not
/// wait for the device.
class GeneratorSnapshot {
 public:
  /// Copies the states, in place of an earlier copy.
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
  std::optional<memory::GeneratorState> on_device_;
};

/// Restores the generators at its end.
class GeneratorScope {
 public:
  /// Takes the states of the host and of `device`.
  explicit GeneratorScope(c10::Device device) { before_.take(device); }
  ~GeneratorScope() { before_.restore(); }
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  GeneratorSnapshot before_;
};

}  // namespace tare
