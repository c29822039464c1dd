// The tables in a run's folder as CSV: PHASE.csv has a row for each epoch, PHASE.steps.csv one for
// each step that was kept, PHASE.lr_find.csv one for each rate of a search.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/report/run_files.h"

namespace tare::report {

/// Returns the columns of the epochs: epoch, train_loss, valid_loss, the metrics of `row`, seconds.
/// The line ends with a newline, as do those of all functions here.
[[nodiscard]] std::string csv_header(const EpochRow& row);
/// Returns the line of an epoch. Numbers are written so that reading them gives the same bits;
/// `samples` is not in the table.
[[nodiscard]] std::string csv_line(const EpochRow& row);

/// Returns the metric of that name in a row; null where there is none.
[[nodiscard]] const MetricValue* find_metric(const std::vector<MetricValue>& metrics,
                                             const std::string& name);

/// Holds the line above the steps.
inline constexpr const char* kStepsHeader = "step,loss,lr\n";
/// Returns one line of the steps.
[[nodiscard]] std::string csv_line(const StepRow& row);

/// Holds one step of the search for a learning rate.
struct RateRow {
  double lr = 0;        ///< of the last parameter group
  double loss = 0;      ///< of the step's batch
  double smoothed = 0;  ///< mean of the losses so far, see LrFindPoint
};
/// Holds the line above the rates.
inline constexpr const char* kRatesHeader = "lr,loss,smoothed\n";
/// Returns one line of the rates.
[[nodiscard]] std::string csv_line(const RateRow& row);

/// Reads a table of epochs. Throws IoError; FormatError with the file and the line.
[[nodiscard]] std::vector<EpochRow> read_epochs(const std::filesystem::path& file);
/// Reads a table of steps. Throws like read_epochs().
[[nodiscard]] std::vector<StepRow> read_steps(const std::filesystem::path& file);
/// Reads a table of rates. Throws like read_epochs().
[[nodiscard]] std::vector<RateRow> read_rates(const std::filesystem::path& file);

}  // namespace tare::report
