// Keeps the current phase and step of each thread.
#include "tare/memory/phase.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "tare/base/immortal.h"
#include "tare/memory/phase_observer.h"

namespace tare::memory {
namespace {

constexpr std::array<const char*, kPhaseKinds> kNames = {
    "none", "data", "forward", "backward", "step", "validate", "predict", "save", "load", "purge"};

constinit std::atomic<uint32_t> process_phase{0};
constinit thread_local uint32_t thread_phase = 0;
constinit std::atomic<uint32_t> newest_step{0};
constinit std::atomic<bool> in_step{false};

constinit std::atomic<const PhaseObserver*> phase_observer{nullptr};

void begun(uint32_t id) noexcept {
  const auto* const observer = phase_observer.load(std::memory_order_acquire);
  if (observer) [[unlikely]]
    observer->begin(id);
}

void ended() noexcept {
  const auto* const observer = phase_observer.load(std::memory_order_acquire);
  if (observer) [[unlikely]]
    observer->end();
}

struct UserPhases {
  std::mutex mutex;
  std::vector<std::string> names;
};

UserPhases& user_phases() {
  static Immortal<UserPhases> phases;
  return *phases;
}

}  // namespace

uint32_t phase_id(std::string_view name) {
  const auto known = std::find(kNames.begin(), kNames.end(), name);
  if (known != kNames.end()) return static_cast<uint32_t>(known - kNames.begin());
  auto& [mutex, names] = user_phases();
  const std::lock_guard lock(mutex);
  const auto found = std::find(names.begin(), names.end(), name);
  const auto index = static_cast<uint32_t>(found - names.begin());
  if (found == names.end()) names.emplace_back(name);
  return kPhaseKinds + index;
}

std::string phase_name(uint32_t id) {
  if (id < kPhaseKinds) return kNames[id];
  auto& [mutex, names] = user_phases();
  const std::lock_guard lock(mutex);
  return id - kPhaseKinds < names.size() ? names[id - kPhaseKinds] : kNames[0];
}

uint32_t current_phase() noexcept {
  return thread_phase != 0 ? thread_phase : process_phase.load(std::memory_order_relaxed);
}

void observe_phases(const PhaseObserver* observer) noexcept {
  phase_observer.store(observer, std::memory_order_release);
}

Phase::Phase(uint32_t id) noexcept
    : before_(process_phase.exchange(id, std::memory_order_relaxed)) {
  begun(id);
}

Phase::~Phase() {
  process_phase.store(before_, std::memory_order_relaxed);
  ended();
}

ThreadPhase::ThreadPhase(PhaseKind kind) noexcept : before_(thread_phase) {
  thread_phase = static_cast<uint32_t>(kind);
  begun(thread_phase);
}

ThreadPhase::~ThreadPhase() {
  thread_phase = before_;
  ended();
}

Step::Step() noexcept {
  newest_step.fetch_add(1, std::memory_order_relaxed);
  in_step.store(true, std::memory_order_relaxed);
}

Step::~Step() { in_step.store(false, std::memory_order_relaxed); }

uint32_t current_step() noexcept { return newest_step.load(std::memory_order_relaxed); }

bool step_under_way() noexcept { return in_step.load(std::memory_order_relaxed); }

}  // namespace tare::memory
