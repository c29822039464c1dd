// Files made from an event history, for other programs to open. All of them replace the file
// atomically and throw IoError. Categories are "unknown" before assign_categories().
#pragma once

#include <filesystem>

#include "tare/memory/event_history.h"

namespace tare::memory {

/// Writes a line per event: time_s, event (start, allocation, free), bytes, allocated_bytes (after
/// the event), block, phase (in force), allocated_in, category. The first line, "start", has the
/// bytes before the first event.
void write_timeline_csv(const EventHistory& history, const std::filesystem::path& path);

/// Writes what torch.cuda.memory._dump_snapshot writes, for pytorch.org/memory_viz and
/// torch.cuda._memory_viz: a pickle of plain lists and dictionaries. The device is number 0.
/// Addresses are made up (first fit), because an event has none; all blocks lie in one segment.
/// Frames are those of call stacks, read as in frames_of().
void write_memory_viewer(const EventHistory& history, const std::filesystem::path& path);

/// Bounds the moments of write_chrome_trace().
inline constexpr size_t kTraceMoments = 20'000;
/// Writes Chrome's trace events as JSON, for ui.perfetto.dev and chrome://tracing: allocated bytes
/// by category, and the phases from their first to their last event. At most kTraceMoments moments
/// are written, the highest of as many equal groups of events, so that the peak is among them.
/// `path` is written atomically. Throws IoError.
void write_chrome_trace(const EventHistory& history, const std::filesystem::path& path);

/// Writes the blocks alive at the peak as collapsed stacks, "category;phase;main;f;g BYTES", for
/// flame graph programs such as speedscope.app and flamegraph.pl.
void write_peak_stacks(const EventHistory& history, const std::filesystem::path& path);

}  // namespace tare::memory
