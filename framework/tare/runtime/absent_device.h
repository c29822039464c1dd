// Why devices that a name may stand for are not there. Internal.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tare::runtime {

/// Describes a device, or a type of devices, that is not there or cannot be opened.
struct AbsentDevice {
  std::string name{};            ///< "cuda:1", "cuda"
  std::string why{};             ///< ends with what to do
  bool worth_a_warning = false;  ///< nobody has asked for its absence
  bool is_there = false;         ///< it cannot be opened

  /// Returns "cuda:1 is not there: " or "cuda:1 cannot be opened: ", and why.
  [[nodiscard]] std::string str() const;
};

/// Notes a device that is not there or cannot be opened. Called by init() and open_device().
void note_absent(AbsentDevice device);

/// Returns what was noted, in order of names.
[[nodiscard]] std::vector<AbsentDevice> absent_devices();

/// Returns why a device is not there: what was noted of it, else of its type, or of a type the
/// first device that is noted, behind its name; empty: unknown.
[[nodiscard]] std::string why_absent(const std::string& name);

/// Returns the first of absent_devices() as AbsentDevice::str(); empty: there is none.
[[nodiscard]] std::string why_host();

/// Logs, once in the life of the process for each device, that `used` is used because the device is
/// not, where that is worth a warning and `concerns` the user.
void warn_of_absent(const std::string& used,
                    const std::function<bool(const AbsentDevice&)>& concerns);

/// Notes cards of the machine that its driver has lost, as a sentence: "card 0 of this machine is
/// lost, ...". Called by init() where the user may miss them.
void note_lost_cards(std::string sentence);

/// Returns what note_lost_cards() was given; empty: nothing.
[[nodiscard]] std::string lost_cards();

/// Logs, once in the life of the process, that `used` is used and that cards are lost, if any are.
void warn_of_lost_cards(const std::string& used);

}  // namespace tare::runtime
