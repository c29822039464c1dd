// The columns of a memory timeline, for its writer and its reader.
#pragma once

#include <array>

namespace tare::memory {

/// Lists the columns in their order; files of earlier versions lack the last one.
inline constexpr std::array<const char*, 8> kTimelineColumns = {
    "time_s", "event", "bytes", "allocated_bytes", "block", "phase", "allocated_in", "category"};

}  // namespace tare::memory
