// The phase of the work, written into every block that is born in it, so that a leak says where it
// came from.
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

/// The id of a user's own phase; the same name gives the same id. Thread-safe.
[[nodiscard]] uint32_t phase_id(std::string_view name);
/// The name of an id: "forward", or what phase_id() was given; "none" for 0 and unknown ids.
[[nodiscard]] std::string phase_name(uint32_t id);
/// The phase in force on this thread.
[[nodiscard]] uint32_t current_phase() noexcept;

/// Names the phase until the end of the block; phases nest. Process-wide, so that the threads a
/// backward runs on are in the phase of the call that waits for them: open it on the thread that
/// drives the training only.
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

/// The phase of this thread alone, in front of the process-wide one: for workers that run beside
/// the training.
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
