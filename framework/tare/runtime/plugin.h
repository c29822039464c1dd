// The contract between the program and a plug-in, a device library that is loaded at run time, such
// as libtare_cuda.so. A plug-in uses no symbol of the program: it gets what it needs through
// HostServices and registers its backends there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tare/memory/collectives.h"
#include "tare/memory/device_backend.h"
#include "tare/memory/phase_observer.h"

namespace tare::runtime {

/// Offers the services of the program to a plug-in; outlives the plug-in.
class HostServices {
 public:
  virtual ~HostServices() = default;
  /// Takes over a device's backend, which lives until the process ends.
  virtual void add_backend(std::unique_ptr<memory::DeviceBackend> backend) = 0;
  /// Takes over a device's collectives, which live until the process ends.
  virtual void add_collectives(std::unique_ptr<memory::Collectives> collectives) = 0;
  /// Returns the phase in force on the calling thread. May be called under an allocator's lock.
  [[nodiscard]] virtual uint32_t current_phase() const noexcept = 0;
  /// Calls phase_name() of the program.
  [[nodiscard]] virtual std::string phase_name(uint32_t id) const = 0;
  /// Calls observe_phases() of the program; `observer` must outlive the process's phases.
  virtual void observe_phases(const memory::PhaseObserver* observer) noexcept = 0;
  /// Returns the number of the newest step. May be called like current_phase().
  [[nodiscard]] virtual uint32_t current_step() const noexcept = 0;
  /// Returns the number of the calling thread's stack, see call_stack.h. May be called like
  /// current_phase().
  [[nodiscard]] virtual uint32_t capture_stack() const noexcept = 0;
  /// Makes the report of oom_report.h, just before an allocation is refused. No lock may be held.
  virtual void report_out_of_memory(c10::Device device, int64_t asked_bytes) noexcept = 0;
  /// Notes why a device of the machine gets no backend, as a continuation of "it is not there: "
  /// that ends with what to do.
  virtual void note_absent(c10::Device device, std::string_view why) = 0;
  /// Notes that the driver has lost these cards of the machine: their numbers by PCI bus, and the
  /// UUIDs of the cards that answer.
  virtual void note_lost_cards(const std::vector<size_t>& numbers,
                               const std::vector<std::string>& others) = 0;
  virtual void warn(std::string_view text) = 0;  ///< logs a warning, see tare::log
  /// Throws ConfigError("[where] problem").
  [[noreturn]] virtual void reject(std::string_view where, std::string_view problem) = 0;
};

/// Is raised with every change of HostServices, DeviceBackend or Collectives; a plug-in of another
/// version is refused.
inline constexpr int kPluginVersion = 16;

/// Points to the plug-in's only symbol, "tare_open_plugin", which adds a backend for each device
/// that LibTorch has, also where that is none, and returns kPluginVersion; adds nothing if
/// `version` differs from its own.
using OpenPlugin = int (*)(int version, HostServices& services);
inline constexpr const char* kOpenPluginName = "tare_open_plugin";  ///< the name of that symbol

}  // namespace tare::runtime
