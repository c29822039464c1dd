// RunReport: what a run has done, phase by phase.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/learner/options.h"
#include "tare/memory/tracker_cost.h"
#include "tare/recipe/classification.h"
#include "tare/recipe/machine.h"

namespace tare {

/// Blocks that a phase left behind and that no object answers for; see Experiment's leaks.
struct PhaseLeak {
  std::string phase{};  ///< in force when they were allocated: "forward"
  std::string site{};   ///< the line that allocated them; empty without RunOptions::call_sites
  int64_t blocks = 0, bytes = 0;                 ///< alive at the end of the phase
  int64_t youngest_steps = 0, oldest_steps = 0;  ///< training steps begun since
};

/// One phase of a run. "Tracked" bytes are allocated bytes on the run's device.
struct PhaseReport {
  std::string name{};              ///< of the phase
  std::vector<EpochRow> epochs{};  ///< whole epochs, in order
  double seconds = 0;              ///< wall time; of processes before a resume, that of its epochs
  double samples_per_s = 0;        ///< of training, without validation
  int64_t consumed_bytes = 0;      ///< tracked when its work ended, above its start
  int64_t data_bytes = 0;          ///< of its data set, which was read before its start
  int64_t peak_bytes = 0;          ///< highest tracked bytes, data set and all
  std::optional<int64_t> planned_peak_bytes{};  ///< what the plan said; unset: no plan
  /// Samples per forward where a batch of the training was cut into the most parts; 0: all whole.
  int64_t micro_batch = 0;
  int64_t overflows = 0;           ///< see FitResult
  int64_t restored_epoch = 0;      ///< see FitResult
  int64_t reclaimed_bytes = 0;     ///< freed by its purge
  int64_t residual_bytes = 0;      ///< tracked after the phase minus at its start
  int64_t fragmented_bytes = 0;    ///< see DeviceReport; 0 on the host
  int64_t allocator_retries = 0;   ///< likewise
  std::vector<PhaseLeak> leaks{};  ///< on any device; most bytes first
};

/// A whole run; after an interrupt what was done of it.
struct RunReport {
  std::string name{}, data{}, device{};  ///< the recipe's name; one line of its data; where it ran
  std::vector<PhaseReport> phases{};     ///< in order; after an interrupt the last one is not whole
  Machine machine{};                     ///< that it ran on
  bool generated = false;                ///< the last phase was on generated data
  std::filesystem::path folder{};        ///< of the run; empty after a dry run
  std::optional<Evaluation> test{};      ///< of the test split
  std::optional<Evaluation> valid{};     ///< of the validation split, where there is no test split
  std::optional<Classification> classification{};  ///< of that split, where it has labels
  std::filesystem::path export_path{};             ///< empty: nothing exported
  int64_t export_bytes = 0;                        ///< size of the bundle
  int64_t residual_bytes = 0;     ///< tracked after destroy minus before construction
  int64_t process_bytes = 0;      ///< resident memory of the process at the end
  double seconds = 0;             ///< wall time; of processes before a resume, that of their phases
  memory::TrackerCost tracker{};  ///< the counts and tags of every allocation of the run
  StopReason reason = StopReason::finished;  ///< why the last fit ended
  std::string resumed_from{};                ///< name of the checkpoint; empty: not resumed
  int64_t resumes = 0;                       ///< how often the run was resumed
  bool unsaved = false;                      ///< the last automatic checkpoint could not be written
};

/// The report as JSON text: phases[] {name, epochs[] {train_loss, valid_loss, metrics, seconds},
/// consumed_bytes, peak_bytes, reclaimed_bytes, residual_bytes, leaks[], ...}, machine, test or
/// valid {loss, metrics}, classification {labels, counts, worst[]}, export {path, bytes},
/// residual_bytes, tracker {allocations, ns_each, share}.
[[nodiscard]] std::string to_json(const RunReport& report);

}  // namespace tare
