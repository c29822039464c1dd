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
};

struct RunOptions {
  std::ostream* out = nullptr;  ///< tables and reports; nullptr: silent
  bool dry_run = false;         ///< two steps per phase, nothing saved or exported: for the peaks
};

/// Runs all phases, then test, export and destroy. Needs tare::init(). An interrupt ends the run
/// after the step in flight with a report of what was done. Throws what the Learner throws.
RunReport run_recipe(const RecipeOptions& recipe, const RunOptions& options = {});

/// The report as JSON text: phases[] {name, epochs[] {train_loss, valid_loss, metrics, seconds},
/// consumed_bytes, peak_bytes, reclaimed_bytes, residual_bytes, ...}, test {metrics}, export {path,
/// bytes}, residual_bytes.
[[nodiscard]] std::string to_json(const RunReport& report);

}  // namespace tare
