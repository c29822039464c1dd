// host_name(): what this machine is called in its network.
#pragma once

#include <string>

namespace tare {

/// Returns the machine's name in its network; empty where it has none.
[[nodiscard]] std::string host_name();

}  // namespace tare
