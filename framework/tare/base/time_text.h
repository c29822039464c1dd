// Moments as text, in the local time zone.
#pragma once

#include <chrono>
#include <string>

namespace tare {

/// Returns "2026-11-22 09:30:00"
[[nodiscard]] std::string time_text(std::chrono::system_clock::time_point time);

/// Formats a time with microseconds, as lines of logs begin: "2026-11-22 09:30:00.000123".
[[nodiscard]] std::string exact_time_text(std::chrono::system_clock::time_point time);

}  // namespace tare
