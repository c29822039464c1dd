// `key=value` on the command line, applied to a configuration tree before it is read.
#pragma once

#include <cstddef>
#include <string_view>

#include "tare/config/node.h"

namespace tare::config {

inline constexpr size_t kMaxArgumentBytes = 4096;

/// Sets one value: "batch=256", "phases.2.epochs=2" (list positions count from 0),
/// "hidden=[64,32]", "name='01'"; what stands behind the first '=' is YAML. Mappings on the way are
/// made where they are missing, and a new key is not looked up here: reading the options finds an
/// unknown one and says "command line". Throws ConfigError for a missing
/// '=', an empty key, a list position that does not exist, a path through a scalar, and an argument
/// above 4 KiB; `root` is unchanged then.
void apply_override(Node& root, std::string_view assignment);

}  // namespace tare::config
