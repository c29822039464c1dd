// PhaseObserver: lets a device library see the phases begin and end.
#pragma once

#include <cstdint>

namespace tare::memory {

/// Functions that every Phase and ThreadPhase calls on its own thread, and that must be quick.
struct PhaseObserver {
  /// Called when a phase begins; `phase` is its id.
  void (*begin)(uint32_t phase) noexcept = nullptr;
  /// Called when the phase ends that began last on the thread.
  void (*end)() noexcept = nullptr;
};

/// Sets the observer from now on; nullptr: none. It must outlive the phases of every thread. A
/// phase that is in force meanwhile calls only `end` of the new one. Without one a phase pays a
/// load and a branch.
void observe_phases(const PhaseObserver* observer) noexcept;

}  // namespace tare::memory
