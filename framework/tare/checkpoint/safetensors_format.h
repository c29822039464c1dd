// Defines what the reader and the writer of safetensors share: reserved keys, the rule for names,
// and the hash of a layout. Internal.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/checkpoint/tensor_info.h"

namespace tare::checkpoint {

/// Returns what is wrong with a tensor's name; unset: nothing.
[[nodiscard]] std::optional<std::string> name_problem(std::string_view name);

inline constexpr const char* kMetadataKey = "__metadata__";
inline constexpr const char* kTiedKey = "tare.tied";
inline constexpr const char* kManifestKey = "tare";

/// Returns Digest::layout of `tensors`, which are sorted by place.
[[nodiscard]] std::string layout_hash(const std::vector<TensorInfo>& tensors,
                                      const std::map<std::string, std::string>& metadata);

}  // namespace tare::checkpoint
