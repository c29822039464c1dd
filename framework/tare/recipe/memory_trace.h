// MemoryTrace: records a run's allocations and writes them to a folder. Internal.
#pragma once

#include <filesystem>
#include <string>

#include "tare/memory/event_log.h"

namespace tare {

/// Records from construction on. Writes `folder`/timeline.csv in finish(), or in the destructor,
/// which an error of the run leads to; the folder is made then. Not thread-safe.
class MemoryTrace {
 public:
  /// Throws IoError if the folder cannot be written to, or made in its parent.
  MemoryTrace(std::filesystem::path folder, c10::Device device);
  /// Logs an error if writing fails.
  ~MemoryTrace();
  MemoryTrace(const MemoryTrace&) = delete;
  MemoryTrace& operator=(const MemoryTrace&) = delete;

  /// Writes the files and returns a line that says so: events, dropped ones, and the share of the
  /// time that recording took. Call it once. Throws IoError.
  [[nodiscard]] std::string finish();

 private:
  std::filesystem::path folder_;
  memory::EventLog log_;
  bool finished_ = false;
};

}  // namespace tare
