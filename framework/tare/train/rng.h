// Snapshots of the random generators that a training run draws from.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// Returns the states of LibTorch's default generators of the host and of the other ones of
/// `devices`, as uint8 tensors named "rng/cpu" and "rng/<device>". Waits for the devices.
[[nodiscard]] std::vector<NamedTensor> rng_state(const std::vector<c10::Device>& devices);
/// Returns the states for one device.
[[nodiscard]] std::vector<NamedTensor> rng_state(c10::Device device);
/// Throws FormatError(operation, path) for a state that a generator refuses; changes nothing.
void check_rng_state(const std::vector<c10::Device>& devices, const std::vector<NamedTensor>& state,
                     std::string_view operation, const std::filesystem::path& path);
/// Restores what rng_state() returned; generators that are not named stay as they are.
void set_rng_state(const std::vector<c10::Device>& devices, const std::vector<NamedTensor>& state);

}  // namespace tare
