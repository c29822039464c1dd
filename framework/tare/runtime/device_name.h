// Device names, as options and command lines use them.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

namespace tare::runtime {

/// Holds a name in its parts: "cuda:1" is a device of the type cuda, number 1.
struct DeviceName {
  std::string type{};          ///< what stands before the colon
  std::optional<int> index{};  ///< from 0 to 127; unset: the first
};

/// Returns the parts of a name, whether or not there is such a device; unset where what stands
/// behind a colon is no number of a device.
[[nodiscard]] std::optional<DeviceName> parts_of(const std::string& name);

/// Returns the names that parse_device() knows without a number: "auto", "cpu", "cuda" and the
/// types of other backends.
[[nodiscard]] std::vector<std::string> device_names();

/// Throws ConfigError for a text that parse_device() does not know, whatever devices there are.
void check_device_name(const std::string& name);

/// Parses "auto" (the first accelerator that has a backend, else the host), "cpu", "cuda" (the
/// first) or "cuda:N"; for another backend its type (memory::DeviceTraits) takes the place of
/// "cuda". Throws ConfigError for any other text, DeviceError for a device that does not exist,
/// with the reason. Opens nothing. Logs a warning, once, where "auto" is the host although there is
/// a driver, and where the cards are fewer since one was lost.
[[nodiscard]] c10::Device parse_device(const std::string& name);

/// Returns the device of parse_device() after it has been opened, which makes the context of a
/// card. "auto" passes over accelerators that cannot be opened, with a warning, for the life of the
/// process; for another name of such a device it throws DoesNotFit, where there is no memory for
/// the context, or DeviceError. To be called first by whoever uses the device.
[[nodiscard]] c10::Device open_device(const std::string& name);

/// Returns the device of parse_device() for each name. With `all`, "auto" stands for all
/// accelerators of the type of the first, in order of their numbers, or for the host where there is
/// none.
[[nodiscard]] std::vector<c10::Device> parse_devices(const std::vector<std::string>& names,
                                                     bool all = false);
/// Returns the devices of parse_devices() after they have been opened, as open_device() does.
[[nodiscard]] std::vector<c10::Device> open_devices(const std::vector<std::string>& names,
                                                    bool all = false);

}  // namespace tare::runtime
