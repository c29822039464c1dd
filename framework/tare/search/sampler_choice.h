// A sampler by name with its options, as the file of a sweep gives it.
#pragma once

#include "tare/config/registry.h"

namespace tare::search {

/// Names a sampler with its options; one that is read is complete.
struct SamplerChoice : config::Choice {};
/// Throws ConfigError, with place and nearest name.
void from_node(const config::Node& node, SamplerChoice& value);
[[nodiscard]] config::Node to_node(const SamplerChoice& value);

}  // namespace tare::search
