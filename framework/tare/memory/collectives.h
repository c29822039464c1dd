// Collectives: exchanges the tensors of a device between processes by a library of the device. A
// device library offers them, see runtime/plugin.h; `parallel` asks for them.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace tare::memory {

/// Describes a process among those that exchange tensors.
struct CollectivesMember {
  int64_t rank = 0;                       ///< in [0, size)
  int64_t size = 1;                       ///< processes
  c10::Device device{c10::kCPU};          ///< that holds its tensors
  std::chrono::milliseconds timeout{};    ///< after which an exchange has failed
  c10::intrusive_ptr<c10d::Store> store;  ///< by which the processes meet
};

/// Connects processes that hold tensors on devices of one type. Thread-safe.
class Collectives {
 public:
  virtual ~Collectives() = default;
  /// Returns the type of the devices.
  [[nodiscard]] virtual c10::DeviceType device_type() const = 0;
  /// Returns the name of the library: "nccl".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns what the hardware of a device is called on its machine: its address on the PCI bus.
  /// Processes that have the same cannot be connected. Empty: the driver does not answer.
  [[nodiscard]] virtual std::string hardware(c10::Device device) const = 0;
  /// Connects a process with the others, and waits for them. The result exchanges tensors of the
  /// member's device, and never ends the process. Its memory on the device is in no count of
  /// tensors. Throws LibTorch's errors.
  [[nodiscard]] virtual c10::intrusive_ptr<c10d::Backend> connect(
      const CollectivesMember& member) const = 0;
};

/// Returns the collectives of a type of device; null: it has none.
[[nodiscard]] const Collectives* collectives_of(c10::DeviceType type);
/// Registers collectives, which then live until the process ends. Not for users: device libraries
/// call it.
void add_collectives(std::unique_ptr<Collectives> collectives);

}  // namespace tare::memory
