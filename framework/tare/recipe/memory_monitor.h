// MemoryMonitor: what holds the memory of a run, in lines with the time.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "tare/report/memory_monitor_options.h"

namespace tare {

/// Prints what holds memory when it is made ("Start"), every MemoryMonitorOptions::interval_s
/// seconds from a thread of its own ("Snapshot"), and when it is destroyed ("End"). If the options
/// are not enabled, it does nothing: no thread, no line, no call stack. Else a memory::CallSites is
/// in scope.
///
///   2026-11-22 09:30:00.000123: memory] ------ Snapshot ------
///   ... GPU Stats               each card as NVIDIA's library reports it; the host; tensors
///   ... Top Diffs since Start   by the phase that allocated the blocks, against "Start"
///   ... Top Incremental         by phase and call site, against the lines before
///   ... Top Current             by phase and call site
///   ... traceback               of the call stacks that hold the most, each frame a line
///
/// Sizes are those of live blocks of tensors on every device, exact at one moment for each device.
/// A size that did not change is in neither of the diffs. Ledgers belong to the training's
/// thread, so blocks have no category here.
class MemoryMonitor {
 public:
  /// Writes to `out`, which must outlive the monitor and may be written by other threads meanwhile,
  /// as std::cout may; the lines of one moment are written at once.
  MemoryMonitor(const report::MemoryMonitorOptions& options, std::ostream& out);
  ~MemoryMonitor();
  MemoryMonitor(const MemoryMonitor&) = delete;
  MemoryMonitor& operator=(const MemoryMonitor&) = delete;

  /// Prints what holds memory at this moment, under `title`. Thread-safe.
  void snapshot(const std::string& title);

 private:
  class Tracer;
  std::unique_ptr<Tracer> tracer_;  // null: not enabled
};

}  // namespace tare
