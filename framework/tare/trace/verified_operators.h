// Operators whose traces have been compared with the host. Internal.
#pragma once

#include <span>
#include <string_view>

namespace tare::plan {

/// Returns the names of the operators, with overloads, sorted; views are not among them.
[[nodiscard]] std::span<const std::string_view> verified_operators();

}  // namespace tare::plan
