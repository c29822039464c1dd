// Runs a recipe: phases to Learner calls, each weighed by an Experiment.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tare/learner/options.h"
#include "tare/recipe/recipe.h"

namespace tare {

struct PhaseReport {
  std::string name{};
  std::vector<EpochRow> epochs{};
  double seconds = 0;
  double samples_per_s = 0;
  int64_t consumed_bytes = 0;   ///< tracked bytes the phase held when it ended, above its start
  int64_t peak_bytes = 0;       ///< the highest tracked bytes in the phase, above its start
  int64_t reclaimed_bytes = 0;  ///< given back by its purge
  int64_t residual_bytes = 0;   ///< tracked after the phase minus at its start
};

struct RunReport {
  std::string name{}, data{}, device{};
  std::vector<PhaseReport> phases{};
  std::optional<Evaluation> test{};
  std::filesystem::path export_path{};  ///< empty: nothing exported
  int64_t export_bytes = 0;
  int64_t residual_bytes = 0;  ///< tracked after destroy minus before construction
  int64_t process_bytes = 0;   ///< resident memory of the process at the end
  double seconds = 0;
  StopReason reason = StopReason::finished;
  std::string resumed_from{};  ///< name of the checkpoint; empty: the run started anew
  bool unsaved = false;        ///< the last automatic checkpoint could not be written
};

/// Whether to go on with a run that a signal, a crash or an error ended.
enum class Resume {
  never,      ///< start anew; the checkpoints of an unfinished run are set aside
  automatic,  ///< go on where there is something to go on with, else start anew
  always      ///< go on; where there is nothing that is an error
};

struct RunOptions {
  std::ostream* out = nullptr;  ///< tables and reports; nullptr: silent
  Resume resume = Resume::never;
  bool dry_run = false;  ///< two steps per phase, nothing saved or exported: for the peaks
};

/// Runs all phases, then test, export and destroy. Needs tare::init().
///
/// While it goes on the run's folder is locked against a second process and holds two automatic
/// checkpoints in turn; at its end recipe.yaml, report.json, a CSV file for each phase and what the
/// phases saved. An interrupt ends the run after the step in flight, with a checkpoint and a report
/// of what was done. A resumed run ends with the weights, metrics and CSV rows (but for their
/// times) of an undisturbed one, bit for bit on the CPU. Throws what the Learner throws; StateError
/// where another process runs in the folder; ConfigError for a recipe that is not the one to go on
/// with, or where there is nothing to go on with.
RunReport run_recipe(const RecipeOptions& recipe, const RunOptions& options = {});

/// The report as JSON text: phases[] {name, epochs[] {train_loss, valid_loss, metrics, seconds},
/// consumed_bytes, peak_bytes, reclaimed_bytes, residual_bytes, ...}, test {metrics}, export {path,
/// bytes}, residual_bytes.
[[nodiscard]] std::string to_json(const RunReport& report);

}  // namespace tare
