// DeviceLink: exchanges tensors between the devices of ranks by a library of the devices. Internal.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <string>

#include "tare/memory/collectives.h"
#include "tare/parallel/sockets.h"

namespace tare::parallel {

class TrackedBackend;  // tracked_backend.h

/// Is a rank's end of the connection between the devices of all ranks. What it exchanges is done by
/// the device after the call has returned, and an exchange that fails there throws nothing until
/// wait(). Not thread-safe.
class DeviceLink {
 public:
  /// Connects this rank's device with those of the others, and waits for them. Throws LibTorch's
  /// errors.
  DeviceLink(const memory::Collectives& collectives, const memory::CollectivesMember& member);
  /// Ends exchanges that are under way, unless leave() was called.
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  /// Returns the name of the library, such as "nccl".
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns LibTorch's end of the connection.
  [[nodiscard]] c10::intrusive_ptr<c10d::Backend> backend() const;
  /// Waits until the device has done what this thread gave it, and releases the tensors of it that
  /// LibTorch's reducer has exchanged. `sockets`: the connections to the other ranks, which close
  /// where one of them ends. Throws std::runtime_error where an exchange fails, or waits for a rank
  /// longer than the member's timeout.
  void wait(const Sockets& sockets) const;
  /// Ends exchanges that are under way, so that the device waits for no rank any more. Their
  /// tensors have any values then. Logs a warning where it cannot.
  void stop() noexcept;
  /// Waits like wait(), and gives back what the library holds on the device.
  void leave(const Sockets& sockets) noexcept;

 private:
  std::string name_;
  c10::Device device_;
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Backend> backend_;
  c10::intrusive_ptr<TrackedBackend> tracked_;  // which passes on to it
  bool has_ended_ = false;
};

}  // namespace tare::parallel
