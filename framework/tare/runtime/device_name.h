// Device names, as options and command lines use them.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace tare::runtime {

/// Returns the names that parse_device() knows without a number: "auto", "cpu", "cuda" and the
/// types of other backends.
[[nodiscard]] std::vector<std::string> device_names();

/// Throws ConfigError for a text that parse_device() does not know, whatever devices there are.
void check_device_name(const std::string& name);

/// Parses "auto" (the first accelerator that has a backend, else the host), "cpu", "cuda" (the
/// first) or "cuda:N"; for another backend its type (memory::DeviceTraits) takes the place of
/// "cuda". Throws ConfigError for any other text, DeviceError for a device that does not exist,
/// with the reason. Logs a warning where "auto" is the host although there is a driver, once.
[[nodiscard]] c10::Device parse_device(const std::string& name);

}  // namespace tare::runtime
