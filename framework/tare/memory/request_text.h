// Internal. Words what a refused allocation asked for, beside what was allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tare::memory {

/// Returns "asked for 3 MiB beside the 5 MiB allocated, which makes 8 MiB of a budget of 6 MiB";
/// without a budget only what stands before the comma.
[[nodiscard]] std::string request_text(int64_t asked_bytes, int64_t allocated_bytes,
                                       std::optional<int64_t> budget_bytes);

}  // namespace tare::memory
