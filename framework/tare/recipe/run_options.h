// RunOptions: how a recipe is run.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <memory>

#include "tare/report/memory_monitor_options.h"

namespace tare::parallel {
class Group;
}

namespace tare {

/// Whether to continue a run that a signal, a crash or an error ended.
enum class Resume {
  never,      ///< start again; the checkpoints of an unfinished run are set aside
  automatic,  ///< continue if there is something to resume, else start again
  always      ///< continue; having nothing to resume is an error
};

/// Sets how run_recipe() runs and what it prints.
struct RunOptions {
  std::ostream* out = nullptr;  ///< tables and reports; nullptr: silent
  /// Whether the table of the model's modules is printed too, and all figures of each phase's
  /// memory in place of one line.
  bool verbose = false;
  Resume resume = Resume::never;  ///< whether an earlier run is continued
  bool overwrite = false;         ///< use folder/name itself, also if it holds a run
  bool dry_run = false;  ///< two steps per phase and nothing saved or exported, to see the peaks
  /// The folder for a record of the device's allocations, also if the run fails; empty: none.
  std::filesystem::path allocation_recording{};
  report::MemoryMonitorOptions memory_monitor{};  ///< printed to `out`, see memory_monitor.h
  bool call_sites = false;  ///< name leaks by the line that allocated them; slower
  /// The ranks that run the recipe together; each calls run_recipe(), and the first one writes the
  /// folder. Null: this process is alone.
  std::shared_ptr<parallel::Group> group{};
  bool plan = false;  ///< plan first (see plan.h), and throw DoesNotFit before any work
};

}  // namespace tare
