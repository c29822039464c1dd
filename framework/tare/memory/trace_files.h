// Files made from an event history, for other programs to open.
#pragma once

#include <filesystem>

#include "tare/memory/event_history.h"

namespace tare::memory {

/// A line per event: time_s, event (start, allocation, free), bytes, allocated_bytes (after the
/// event), block, phase (in force), allocated_in. The first line, "start", has the bytes before the
/// first event. Replaces the file atomically; throws IoError.
void write_timeline_csv(const EventHistory& history, const std::filesystem::path& path);

}  // namespace tare::memory
