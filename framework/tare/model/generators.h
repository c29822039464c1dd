// Snapshots of the random generators of host and device, cheap enough to take at each step.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>
#include <c10/core/Device.h>

#include <optional>
#include <utility>
#include <vector>

#include "tare/memory/device_traits.h"

namespace tare {

/// Holds a copy of the states of LibTorch's default generators of the host and of devices, in 2.5
/// KiB and a few bytes for each device, whose backend gives its state. Allocates no tensor and does
/// not wait for a device.
class GeneratorSnapshot {
 public:
  /// Copies the states, in place of an earlier copy.
  void take(c10::Device device);
  /// Copies the states of the host and of each of the devices, of which there is at least one.
  void take(const std::vector<c10::Device>& devices);
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
  using OfDevice = std::pair<c10::Device, std::optional<memory::GeneratorState>>;
  std::vector<OfDevice> more_;  // those after the first device
};

/// Restores the generators at its end.
class GeneratorScope {
 public:
  /// Takes the states of the host and of `device`.
  explicit GeneratorScope(c10::Device device) { before_.take(device); }
  /// Takes the states of the host and of `devices`.
  explicit GeneratorScope(const std::vector<c10::Device>& devices) { before_.take(devices); }
  ~GeneratorScope() { before_.restore(); }
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  GeneratorSnapshot before_;
};

}  // namespace tare
