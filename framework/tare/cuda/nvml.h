// Utilisation and memory of a GPU from NVIDIA's management library (NVML), loaded at run time: its
// header is not in the toolkit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tare::cuda {

/// One card. Everything is unset where the library or the right to ask it is missing. Thread-safe.
class NvmlDevice {
 public:
  /// `pci_bus_id` as cudaDeviceGetPCIBusId gives it: independent of CUDA_VISIBLE_DEVICES.
  explicit NvmlDevice(const std::string& pci_bus_id);

  /// Share of the last sampling period in which a kernel ran, 0 to 1.
  [[nodiscard]] std::optional<double> utilisation() const;
  /// Memory of this process on the card, context included; unset also inside a container that hides
  /// process numbers.
  [[nodiscard]] std::optional<int64_t> process_bytes() const;

 private:
  void* handle_ = nullptr;
};

}  // namespace tare::cuda
