// Why devices that a name may stand for are not there. Internal.
#pragma once

#include <string>
#include <vector>

namespace tare::runtime {

/// Describes a device, or a type of devices, that is not there.
struct AbsentDevice {
  std::string name{};            ///< "cuda:1", "cuda"
  std::string why{};             ///< ends with what to do
  bool worth_a_warning = false;  ///< nobody has asked for its absence
};

/// Notes a device that is not there; `why` continues "cuda:1 is not there: ". Called by init().
void note_absent(AbsentDevice device);

/// Returns what was noted, in order of names.
[[nodiscard]] std::vector<AbsentDevice> absent_devices();

/// Returns why a device is not there: what was noted of it, else of its type, or of a type the
/// first device that is noted, behind its name; empty: unknown.
[[nodiscard]] std::string why_absent(const std::string& name);

/// Logs, once in the life of the process, what is worth a warning where no accelerator is used.
void warn_of_absent();

}  // namespace tare::runtime
