// Executor: where the processes of runs are, and what runs can count on there.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tare/launch/device_slot.h"
#include "tare/launch/process.h"

namespace tare::launch {

/// Starts runs. Callers ask an executor what it can do, never of which type it is. Not thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Throws StateError where this machine cannot start runs so, because a program is missing.
  virtual void require_available() const {}
  /// Returns the slots of an executor that has slots of its own, for `jobs` runs at a time (0: as
  /// many as it allows). If empty, runs take the slots of this machine.
  [[nodiscard]] virtual std::vector<DeviceSlot> slots(int64_t jobs) const;
  /// Whether the place of a run limits its memory: then runs get no budget, and none is planned.
  [[nodiscard]] virtual bool has_own_memory_limits() const { return false; }
  /// Whether start() starts a command as often as a run has ranks, ExecutorContext::ranks. Else the
  /// command does so.
  [[nodiscard]] virtual bool starts_ranks() const { return false; }
  /// Returns the time between two looks at the files of runs, longer over a network's file system.
  [[nodiscard]] virtual std::chrono::milliseconds poll_interval() const;
  /// Called once, before start(), with what an earlier process thought was running: returns the
  /// runs by their names that it has started and that can be followed. The others have ended then.
  /// Throws StateError for a run that may still be running, and is out of reach.
  virtual std::map<std::string, std::unique_ptr<Process>> recover(
      const std::vector<ProcessId>& ids) = 0;
  /// Whether start() may be called now; called a few times a second, with how many runs are running
  /// or could be at a time. Throws StateError if there can never be a place.
  virtual bool has_capacity(int64_t runs) = 0;
  /// Throws IoError.
  virtual std::unique_ptr<Process> start(const ChildStart& how) = 0;
};

/// Ends the processes that are still there, with their groups.
void end_processes(const std::vector<ProcessId>& ids);

}  // namespace tare::launch
