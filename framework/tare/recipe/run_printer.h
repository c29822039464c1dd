// RunPrinter: what a run prints while it works. Internal.
#pragma once

#include <iosfwd>
#include <string>

#include "tare/callback/memory_peak.h"
#include "tare/experiment/experiment_report.h"
#include "tare/learner/learner.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/run_options.h"
#include "tare/recipe/run_report.h"
#include "tare/recipe/schedule_preview.h"

namespace tare {

/// Prints to the run's output, or nothing where it has none. The recipe must outlive it.
class RunPrinter {
 public:
  RunPrinter(const RecipeOptions& recipe, const RunOptions& options)
      : recipe_(recipe),
        out_(options.out),
        group_(options.group.get()),
        verbose_(options.verbose),
        call_sites_(options.call_sites) {}

  void folder(const std::filesystem::path& folder) const;
  /// Prints the data and the model of the run; `sample` is one sample of the data, on the meta
  /// device.
  void start(Learner& learner, const std::string& data, const Batch& sample);
  /// Prints that an unfinished run beside this one could be continued; an empty path: there is
  /// none.
  void unfinished(const std::filesystem::path& folder) const;
  /// Prints that the run continues; `inside` is whether the checkpoint was saved inside the next
  /// phase.
  void continued(const std::filesystem::path& folder, const std::string& checkpoint,
                 size_t phases_done, bool inside) const;
  void phase_begin(size_t index);
  void frozen(const FreezeReport& report) const;
  void data(const std::string& description);  ///< unless it was the last one printed
  void micro_batches(const MemoryPlan& plan) const;
  void recompute(const std::vector<std::string>& blocks) const;  ///< that the plan has chosen
  /// Prints which weights the phase ends with. `lost`: see SaveBest::is_lost().
  void best(const std::string& figure, const FitResult& fit, bool lost) const;
  /// Prints all figures of a phase's memory, where they are wanted. For `data_bytes` see
  /// PhaseReport.
  void memory(const ExperimentReport& report, const MemoryPeak& peak, int64_t data_bytes) const;
  void found_rate(const LrFindResult& found) const;
  void schedule(const SchedulePreview& preview) const;
  void phase(const PhaseReport& phase) const;
  void evaluation(const SplitFigures& evaluation, bool of_test, bool generated) const;
  void exported(const std::filesystem::path& path, int64_t bytes) const;
  void end(const RunReport& report) const;
  /// Prints that `folder` keeps no weights of the run, and which key keeps them.
  void no_weights(const std::filesystem::path& folder) const;
  void line(const std::string& text) const;

 private:
  [[nodiscard]] std::string bold(const std::string& text) const;

  const RecipeOptions& recipe_;
  std::ostream* out_;
  const parallel::Group* group_;  // null: the process is alone
  bool verbose_, call_sites_;
  std::string described_;  // the data that were printed last
  size_t column_ = 0;      // at which the line of the phase continues
};

}  // namespace tare
