// How a run went. Internal.
#pragma once

#include <filesystem>
#include <string>

#include "tare/sweep/child.h"

namespace tare::sweep {

/// The exit code of a run that was out of memory.
inline constexpr int kOutOfMemoryExit = 3;

/// What a run's folder says after its process has ended so.
[[nodiscard]] Outcome outcome_of(const std::filesystem::path& folder, const ChildEnd& end,
                                 const std::string& metric);

}  // namespace tare::sweep
