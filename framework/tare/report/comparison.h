// Several runs side by side: the settings in which they differ, their figures, their curves, their
// memory over time and their worst samples.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/config/node.h"
#include "tare/report/compared_row.h"
#include "tare/report/run_files.h"

namespace tare::report {

/// Bounds the runs of a comparison: each has a colour of its own in the charts.
inline constexpr size_t kMostCompared = 9;

/// Says over what a curve goes.
enum class CurveAxis { epoch, step, seconds };

/// Holds the curves of one figure. A line that a run does not have is empty.
struct ComparedCurve {
  std::string name{};                         ///< "valid_loss", "accuracy", "learning_rate"
  CurveAxis axis = CurveAxis::epoch;          ///< of `places`
  std::vector<std::vector<double>> lines{};   ///< values of each run
  std::vector<std::vector<double>> places{};  ///< of these values on the axis; epochs from 1
};

/// Holds what a run's last evaluation says of single samples.
struct ComparedTest {
  bool of_validation = false;                      ///< and not of a test split
  std::optional<Classification> classification{};  ///< unset: of a model without classes
  std::vector<WorstRow> worst_rows{};              ///< of such a model
};

/// Names a run that failed.
struct FailedRun {
  std::string run{};     ///< its name
  std::string reason{};  ///< the message of the error, in one line
};

/// Compares runs; a value.
struct Comparison {
  std::vector<std::string> runs{};        ///< names; folders where two runs have one name
  std::vector<ComparedRow> settings{};    ///< in which the runs differ, by their paths
  std::vector<ComparedRow> figures{};     ///< of the whole runs
  std::vector<ComparedCurve> curves{};    ///< losses, metrics, rates, bytes over time
  std::vector<ComparedTest> tests{};      ///< of each run
  std::vector<std::string> unfinished{};  ///< names of the runs that have not ended
  std::vector<FailedRun> failed{};        ///< that an error has ended
};

/// Reads the folders of 2 to kMostCompared runs, as `tare run` leaves them. The name and the folder
/// of a run count as no setting. A key that a recipe lacks has its default. A setting that some of
/// the runs do not have, such as that of a phase more, and that is empty or at its default in the
/// others, is skipped. `defaults`: the text of a recipe with all defaults, whose first phase stands
/// for every phase; `own_defaults`: empty, where such options have none. Throws IoError for a file
/// that cannot be read, ConfigError for another number of folders and for a folder without a run,
/// FormatError for a damaged file.
[[nodiscard]] Comparison compare_runs(const std::vector<std::filesystem::path>& folders,
                                      const std::string& defaults = {},
                                      const OwnDefaults& own_defaults = {});

/// Returns tables of the settings and the figures, within `width` columns.
[[nodiscard]] std::string to_text(const Comparison& comparison, size_t width);
/// Returns one table of comma-separated values: kind (setting, figure, curve, step_curve,
/// seconds_curve), name, epoch (of a curve; step or seconds of the others) and a column for each
/// run. A value that a run does not have is empty.
[[nodiscard]] std::string to_csv(const Comparison& comparison);
/// Returns {runs [], settings {path: []}, figures {name: []}, curves {name: [[]]}, step_curves and
/// seconds_curves {name: [{at [], values []}]}, worst [[{name, label, predicted, loss}]],
/// unfinished [], failed {run: reason}}, without a newline at the end; NaN is null.
[[nodiscard]] std::string to_json(const Comparison& comparison);
/// Returns one HTML page with the tables, a chart for each curve, and the confusion matrices and
/// worst samples of the runs, which needs nothing else.
[[nodiscard]] std::string to_html(const Comparison& comparison);

}  // namespace tare::report
