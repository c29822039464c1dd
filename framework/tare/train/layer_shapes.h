// The shapes of what the modules of a model make of a sample. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// Returns the submodule that has a parameter, "layer1.conv" of "layer1.conv.weight"; "" for the
/// model itself.
[[nodiscard]] std::string module_of(const std::string& parameter);

/// Returns the sizes of the result of the last operator that used a parameter of each submodule, by
/// the submodule's name ("" for the model itself), in `forward`, which computes with the model. The
/// model is in evaluation mode meanwhile, and nothing has gradients; random generators stay as they
/// are, on the host and on the model's `devices`. A module whose parameters no operator takes is
/// skipped. Throws what `forward` throws.
[[nodiscard]] std::map<std::string, std::vector<int64_t>> layer_shapes(
    Model& model, const std::vector<c10::Device>& devices, const std::function<void()>& forward);

}  // namespace tare
