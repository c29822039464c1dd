// AllocationRecording: records a run's allocations and writes them to a folder. Internal.
#pragma once

#include <filesystem>
#include <string>

#include "tare/memory/block_categories.h"
#include "tare/memory/event_log.h"

namespace tare {

/// Records from construction on. Writes timeline.csv, snapshot.pickle, trace.json and peak.folded
/// (see memory/trace_files.h) into `folder` in finish(), or in the destructor, which an error of
/// the run leads to; the folder is made then. Not thread-safe.
class AllocationRecording {
 public:
  /// Throws IoError if the folder cannot be written to, or made in its parent.
  AllocationRecording(std::filesystem::path folder, c10::Device device);
  /// Logs an error if writing fails.
  ~AllocationRecording();
  AllocationRecording(const AllocationRecording&) = delete;
  AllocationRecording& operator=(const AllocationRecording&) = delete;

  /// Notes which blocks are in the ledgers of the living now, so that the files know what they are
  /// for.
  void note_categories();

  /// Writes the files and returns a line that says so: events, dropped ones, and the share of the
  /// time that recording took. Call it once. Throws IoError.
  [[nodiscard]] std::string finish();

 private:
  std::filesystem::path folder_;
  c10::Device device_;
  memory::EventLog log_;
  memory::BlockCategories categories_;
  bool finished_ = false;
};

}  // namespace tare
