// RunFiles: the content of a run's folder, as values. Internal.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/report/run_failure.h"
#include "tare/report/run_files.h"
#include "tare/report/run_tables.h"
#include "tare/report/timeline.h"
#include "tare/report/worst_rows.h"

namespace tare::report {

/// Holds the files of one phase. A value.
struct PhaseFiles {
  std::string name{};
  std::vector<EpochRow> epochs{};
  std::vector<StepRow> steps{};
  std::vector<RateRow> rates{};          ///< of the search for its rate
  std::optional<PhaseReport> figures{};  ///< unset until the phase has ended
};

/// Holds what was read; a value. What a file does not have is skipped and named in `missing`.
struct RunFiles {
  std::string name{};
  std::string recipe{};  ///< recipe.yaml as text
  std::vector<PhaseFiles> phases{};
  std::optional<RunFigures> figures{};  ///< unset until the run has ended
  std::optional<RunFailure> failure{};  ///< unset: no error has ended the run
  std::optional<Timeline> memory{};
  std::vector<WorstRow> worst_rows{};  ///< of a table with numbers as targets; empty: no such
  std::vector<std::string> missing{};  ///< sentences
};

/// Returns the metrics of all epochs, each once, in the order in which they name them.
[[nodiscard]] std::vector<std::string> metric_names(const RunFiles& run);
/// Returns the metrics that the run's recipe lists; empty: it lists none.
[[nodiscard]] std::vector<std::string> recipe_metrics(const RunFiles& run);

/// Reads recipe.yaml, report.json, failure.json, the CSV files of the phases and of the worst rows,
/// and timeline.csv of `trace`, which need not be there if `trace` is the run's folder. Of a folder
/// of a program's own, where a Learner has written history.csv by the callback csv_log, that is the
/// only phase. Throws IoError if the folder or the trace is missing, ConfigError if the folder
/// holds no run, FormatError and ConfigError for a damaged file.
[[nodiscard]] RunFiles read_run(const std::filesystem::path& folder,
                                const std::filesystem::path& trace);

}  // namespace tare::report
