// DeviceSlot: a place where runs can be, with its memory.
#pragma once

#include <cstdint>
#include <string>

namespace tare::launch {

/// Distinguishes the resources that a slot stands for.
enum class SlotKind {
  host,   ///< this machine's processors
  gpu,    ///< one of this machine's cards
  remote  ///< other machines, whose memory is not counted here
};

/// Describes a device that runs are placed on. A value.
struct DeviceSlot {
  std::string name{};              ///< "host", or a GPU's UUID; of a remote one what a person reads
  int64_t total_bytes = 0;         ///< for all runs
  int64_t jobs = 1;                ///< runs at a time
  int64_t context_bytes = 0;       ///< that a process takes beside its tensors, in what it reserves
  SlotKind kind = SlotKind::host;  ///< which of the members above count
  std::string device{};            ///< the card as the user counts it, "cuda:1"; empty: only `name`

  /// Whether it is a card of this machine.
  [[nodiscard]] bool is_gpu() const { return kind == SlotKind::gpu; }
  /// Returns the shorter name: "cuda:1", or else `name`.
  [[nodiscard]] const std::string& short_name() const { return device.empty() ? name : device; }
  /// Returns "cuda:1 (GPU-8f2b)", or else `name`.
  [[nodiscard]] std::string full_name() const {
    return device.empty() ? name : device + " (" + name + ')';
  }
  /// Whether its memory is not this machine's.
  [[nodiscard]] bool is_remote() const { return kind == SlotKind::remote; }
};

}  // namespace tare::launch
