// Records the allocations of a run, and writes them as files.
#include "tare/recipe/allocation_recording.h"

#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/memory/trace_files.h"
#include "tare/memory/tracker_cost.h"

namespace tare {
namespace {

constexpr const char* kTimeline = "timeline.csv";

/// Throws where the folder cannot be made at the end, with those above it that are missing.
std::filesystem::path checked(std::filesystem::path folder) {
  namespace fs = std::filesystem;
  fs::path missing = folder;
  while (missing.has_parent_path() && missing.parent_path() != missing &&
         !fs::exists(missing.parent_path()))
    missing = missing.parent_path();
  io::check_writable(fs::is_directory(missing) ? missing / kTimeline : missing);
  return folder;
}

}  // namespace

AllocationRecording::AllocationRecording(std::filesystem::path folder, c10::Device device)
    : folder_(checked(std::move(folder))), device_(device), log_({.device = device}) {}

AllocationRecording::~AllocationRecording() {
  if (finished_) return;
  try {
    log::info(finish());
  } catch (const Error& error) {
    log::error(error.what());
  }
}

void AllocationRecording::note_categories() {
  categories_.merge(memory::categories_now(device_, Accountable::living_ledger()));
}

std::string AllocationRecording::finish() {
  finished_ = true;
  memory::EventHistory history = log_.history();
  memory::assign_categories(history, categories_);
  io::make_directories(folder_);
  memory::write_timeline_csv(history, folder_ / kTimeline);
  memory::write_memory_viewer(history, folder_ / "snapshot.pickle");
  memory::write_chrome_trace(history, folder_ / "trace.json");
  memory::write_peak_stacks(history, folder_ / "peak.folded");
  const memory::TrackerCost cost{.records = history.events.size() + history.dropped,
                                 .ns_each = memory::event_cost_ns(),
                                 .seconds = static_cast<double>(history.span_ns) * 1e-9};
  return "memory trace: " + format_count(static_cast<int64_t>(history.events.size())) +
         " events in " + printable((folder_ / kTimeline).string()) +
         ", snapshot.pickle, trace.json and peak.folded, " +
         format_count(static_cast<int64_t>(history.dropped)) +
         " older ones dropped; recording took " + cost.str("events");
}

}  // namespace tare
