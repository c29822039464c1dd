// The devices on which a Learner with given options works.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "tare/train/options.h"

namespace tare {

/// Throws ConfigError, naming `where`, for stages beside options that they cannot have, and for a
/// name in them that no machine knows as a device. Looks at no device.
void check_stages(const LearnerOptions& options, const std::string& where);

/// Returns the device of each stage of the model or, without LearnerOptions::stages, the device of
/// the whole; the host may come several times. Opens nothing. Throws DeviceError for a device that
/// does not exist.
[[nodiscard]] std::vector<c10::Device> parse_devices(const LearnerOptions& options);
/// Returns the devices of parse_devices() after they have been opened, see runtime::open_device().
[[nodiscard]] std::vector<c10::Device> open_devices(const LearnerOptions& options);

}  // namespace tare
