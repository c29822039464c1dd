// Snapshots of the random generators that a training run draws from.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// Returns the states of LibTorch's default generators of the host and, if it is another, of
/// `device`, as uint8 tensors named "rng/cpu" and "rng/<device>". Waits for the device.
[[nodiscard]] std::vector<NamedTensor> rng_state(c10::Device device);
/// Throws FormatError(operation, path) for a state that a generator refuses; changes nothing.
void check_rng_state(c10::Device device, const std::vector<NamedTensor>& state,
                     std::string_view operation, const std::filesystem::path& path);
/// Restores what rng_state() returned; generators that are not named stay as they are.
void set_rng_state(c10::Device device, const std::vector<NamedTensor>& state);

}  // namespace tare
