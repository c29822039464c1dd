// RunReport: what a run has done, phase by phase.
#pragma once

#include <filesystem>

#include "tare/memory/tracker_cost.h"
#include "tare/report/run_files.h"

namespace tare {

/// Holds the figures of report.json, which to_json() writes, and what only the caller of
/// run_recipe() needs.
struct RunReport : RunFigures {
  std::filesystem::path folder{};      ///< of the run; empty after a dry run
  memory::TrackerCost tracker_cost{};  ///< what `tracker` was made of
  bool unsaved = false;                ///< the last automatic checkpoint could not be written
  bool best_lost = false;              ///< weights of a phase's best epoch could not be written
};

}  // namespace tare
