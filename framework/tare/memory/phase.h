// Phases and steps of the work: each block records the phase and the step it was allocated in, so
// that a snapshot can say what it is for and a leak report where and when it came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tare::memory {

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
inline constexpr uint32_t kPhaseKinds = 10;

/// The id of a phase of your own; the same name gives the same id. Thread-safe.
[[nodiscard]] uint32_t phase_id(std::string_view name);
/// The name of an id: "forward", or a name given to phase_id(); "none" for 0 and unknown ids.
[[nodiscard]] std::string phase_name(uint32_t id);
/// The phase in force on this thread.
[[nodiscard]] uint32_t current_phase() noexcept;

/// Sets the phase until the end of the scope; phases nest. Process-wide, because backward runs on
/// threads of LibTorch's: use it only on the thread that drives the training.
class Phase {
 public:
  explicit Phase(PhaseKind kind) noexcept : Phase(static_cast<uint32_t>(kind)) {}
  explicit Phase(std::string_view name) : Phase(phase_id(name)) {}
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
  explicit ThreadPhase(PhaseKind kind) noexcept;
  ~ThreadPhase();
  ThreadPhase(const ThreadPhase&) = delete;
  ThreadPhase& operator=(const ThreadPhase&) = delete;

 private:
  uint32_t before_;
};

/// A training step under way, from its data to the end of its last callback. Process-wide: open one
/// at a time, on the thread that drives the training.
class Step {
 public:
  Step() noexcept;
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
};

/// The number of the newest step, from 1; 0 before the first. It starts again after 2^32 steps.
[[nodiscard]] uint32_t current_step() noexcept;
/// Whether that step is still under way.
[[nodiscard]] bool step_under_way() noexcept;

}  // namespace tare::memory
