// The cards of this machine and their processes, as NVIDIA's management library (NVML) reports
// them. It is loaded at run time, because its header is not in the toolkit and the driver brings
// it. It needs neither CUDA nor a context on a card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tare::cuda {

/// Describes a process that computes on a card.
struct NvmlProcess {
  int64_t id = 0;  ///< in the driver's numbering: in a container often another than /proc's
  std::optional<int64_t> bytes{};  ///< of the card; unset where the driver hides it
};

/// Reports a card's memory in bytes, all processes included.
struct NvmlMemory {
  int64_t total_bytes = 0, used_bytes = 0, free_bytes = 0;  ///< used: by all processes
};

/// Asks NVML about one card, or about one slice of a card that MIG divides, which is a device of
/// its own. Everything is unset or empty where the library or the right to ask it is missing.
/// Thread-safe.
class NvmlDevice {
 public:
  /// Opens the slice whose UUID is `uuid` ("8f2bc4a0-...", without a prefix), else the card with
  /// `pci_bus_id` as cudaDeviceGetPCIBusId gives it: independent of CUDA_VISIBLE_DEVICES.
  explicit NvmlDevice(const std::string& pci_bus_id, const std::string& uuid = {});
  /// Returns every card of the machine that may be asked, in the order of the PCI bus; in place of
  /// a card that has slices these.
  [[nodiscard]] static std::vector<NvmlDevice> all();
  /// Returns the numbers, as card_number() has them, of the cards that the driver has lost: they
  /// answer nothing, and are not in all().
  [[nodiscard]] static std::vector<size_t> lost_cards();

  /// Returns "NVIDIA H200", "NVIDIA H200 MIG 1g.18gb".
  [[nodiscard]] std::string name() const;
  /// Returns "GPU-8f2bc4a0-...", "MIG-5bd7...", as CUDA_VISIBLE_DEVICES takes it.
  [[nodiscard]] std::string uuid() const;
  /// Returns the device's name among those of all(): "cuda:1", and "mig:0.2" for the third slice of
  /// the first card, which CUDA calls cuda:0 in a process that is shown it alone.
  [[nodiscard]] std::string id() const;
  /// Returns the UUID of the card that the slice is of; of a whole card its own.
  [[nodiscard]] std::string uuid_of_card() const;
  /// Returns the number of the card in the order of the PCI bus, from 0, among all of the machine,
  /// by which CUDA_VISIBLE_DEVICES may name it. Of a device of all().
  [[nodiscard]] size_t card_number() const { return card_number_; }
  [[nodiscard]] std::optional<NvmlMemory> memory() const;  ///< is unset if not reported
  /// Returns the share of the last sample period in which a kernel ran, 0 to 1.
  [[nodiscard]] std::optional<double> utilisation() const;
  /// Returns the temperature of the chip, in degrees Celsius.
  [[nodiscard]] std::optional<int64_t> temperature() const;
  [[nodiscard]] std::vector<NvmlProcess> processes() const;  ///< processes that compute on the card
  /// Returns the memory that this process holds on the card; unset also where the driver hides
  /// processes, as in most containers.
  [[nodiscard]] std::optional<int64_t> process_bytes() const;

 private:
  NvmlDevice(void* handle, void* card, size_t card_number, std::optional<size_t> slice = {})
      : handle_(handle), card_(card), card_number_(card_number), slice_(slice) {}

  void* handle_ = nullptr;
  void* card_ = nullptr;  // the same, or that of the card that the slice is of
  size_t card_number_ = 0;
  std::optional<size_t> slice_{};  // among those of the card
};

/// Returns the driver's version, such as "580.65.06"; empty without one.
[[nodiscard]] std::string nvml_driver_version();

}  // namespace tare::cuda
