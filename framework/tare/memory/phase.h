// Phases of the work: each block records the phase it was allocated in, so that a leak report can
// say where a leak came from.
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

}  // namespace tare::memory
