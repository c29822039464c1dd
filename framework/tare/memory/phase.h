// Phases and steps of the work: each block records the phase and the step it was allocated in, so
// that a snapshot can say what it is for and a leak report where and when it came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tare::memory {

/// Lists the phases that have a number of their own, below kPhaseKinds.
enum class PhaseKind : uint32_t {
  none,
  data,
  forward,
  backward,
  step,
  validate,
  predict,
  save,
  load,
  purge
};
inline constexpr uint32_t kPhaseKinds = 10;  ///< how many kinds there are

/// Returns the id of a phase of your own; the same name gives the same id. Thread-safe.
[[nodiscard]] uint32_t phase_id(std::string_view name);
/// Returns the name of an id: "forward", or a name given to phase_id(); "none" for 0 and unknown
/// ids.
[[nodiscard]] std::string phase_name(uint32_t id);
/// Returns the phase in force on this thread.
[[nodiscard]] uint32_t current_phase() noexcept;

/// Sets the phase until the end of the scope; phases nest. Process-wide, because backward runs on
/// threads of LibTorch's: use it only on the thread that drives the training.
class Phase {
 public:
  /// Sets a phase of Tare's own.
  explicit Phase(PhaseKind kind) noexcept : Phase(static_cast<uint32_t>(kind)) {}
  /// Sets a phase by its name, which becomes known if it is new.
  explicit Phase(std::string_view name) : Phase(phase_id(name)) {}
  /// Sets a phase by its id, see phase_id().
  explicit Phase(uint32_t id) noexcept;
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  uint32_t before_;
};

/// Sets the phase of this thread alone, over the process-wide one: for threads that run beside the
/// training, such as loader workers.
class ThreadPhase {
 public:
  /// Sets the phase of the calling thread.
  explicit ThreadPhase(PhaseKind kind) noexcept;
  ~ThreadPhase();
  ThreadPhase(const ThreadPhase&) = delete;
  ThreadPhase& operator=(const ThreadPhase&) = delete;

 private:
  uint32_t before_;
};

/// Marks a training step under way, from its data to the end of its last callback. Process-wide:
/// open one at a time, on the thread that drives the training.
class Step {
 public:
  Step() noexcept;
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
};

/// Returns the number of the newest step, from 1; 0 before the first. It starts again after 2^32
/// steps.
[[nodiscard]] uint32_t current_step() noexcept;
/// Whether that step is still under way.
[[nodiscard]] bool step_under_way() noexcept;

}  // namespace tare::memory
