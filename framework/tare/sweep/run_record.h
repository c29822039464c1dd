// The files of a run that has ended: history.json, run_data.json and a plot of each metric.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/io.h"
#include "tare/config/node.h"
#include "tare/report/read_run.h"

namespace tare::sweep {

/// Holds a metric by epoch. Either list may be empty: it was not measured there.
struct MetricHistory {
  std::string name{};                    ///< "loss", "accuracy", ...; any text
  std::vector<double> train{}, valid{};  ///< the first value is of epoch 1
};

/// Describes a run that has ended. A value.
struct RunRecord {
  config::Node config{};  ///< the run's whole configuration, a map, in its order
  std::chrono::system_clock::time_point start{}, end{};  ///< on this machine's clock
  std::vector<MetricHistory> history{};                  ///< in the order of the file
  std::vector<MetricValue> results{};                    ///< of a test split; empty without
  int64_t peak_bytes = 0;  ///< of meta.data; 0: unknown, and not written
  /// Further entries of meta.data; they replace entries with equal names.
  std::vector<MetricValue> more{};
};

/// Returns the record of a run of `tare run`: the losses and, of the validation, the metrics, over
/// all phases in order, NaN for epochs of a phase without that metric. A loss or metric that has no
/// value in any epoch of the validation was not measured there.
[[nodiscard]] RunRecord record_of(const report::RunFiles& run, config::Node config,
                                  std::chrono::system_clock::time_point start,
                                  std::chrono::system_clock::time_point end);

/// Returns {"loss": [...], "val_loss": [...], ...} on one line: lists that are not empty, numbers
/// that are not finite as null. Text that is not UTF-8 becomes U+FFFD, here and in run_data_json().
[[nodiscard]] std::string history_json(const RunRecord& record);

/// Returns the configuration as JSON on one line, with another `meta.data`. It has start and end in
/// seconds since 1970, with microseconds, and as local time. It has total_time in seconds, 0 for a
/// clock that was set back. Then come the results, train_<m> and val_<m> of the last epoch, and the
/// epochs. A
/// `meta` that is not a map is replaced by one. Throws ConfigError if the configuration is not a
/// map.
[[nodiscard]] std::string run_data_json(const RunRecord& record);

/// Holds the part of a run's run_data.json that a sweep reads: the values of its `meta.data` by
/// name, NaN for what is not a number.
struct RunData {
  std::vector<MetricValue> values{};  ///< in the order of the file

  /// Returns the value of that name; unset where there is none.
  [[nodiscard]] std::optional<double> find(const std::string& name) const;
};

/// Reads run_data.json in a run's folder; unset where it is not there, or has no `meta.data`, since
/// another program may have written it. Throws IoError.
[[nodiscard]] std::optional<RunData> read_run_data(const std::filesystem::path& folder);

/// Reads a list of history.json in a run's folder, NaN for what is not a number; empty where the
/// file has no such list. Throws IoError.
[[nodiscard]] std::vector<double> read_history(const std::filesystem::path& folder,
                                               const std::string& name);

/// Returns the configuration as JSON on one line; text as in history_json().
[[nodiscard]] std::string config_json(const config::Node& config);

/// Returns the duration in whole seconds: "59s", "1h 0m 0s", "2d 0h 0m 5s".
[[nodiscard]] std::string duration_text(std::chrono::microseconds duration);

/// Writes plot_file_name(metric).svg and .png, each atomically; nothing for less than two epochs.
/// Throws IoError.
void write_plot(const std::filesystem::path& folder, const MetricHistory& metric,
                io::Flush flush = io::Flush::yes);

/// Writes history.json, plot_file_name(m).svg and .png for each metric m of two epochs at least,
/// and last run_data.json, with which the files of a run are complete. Each atomically but not
/// flushed, as all of it can be made again; `folder` must exist. Throws IoError, and what
/// run_data_json() throws, before it writes.
void write_run_files(const std::filesystem::path& folder, const RunRecord& record);

}  // namespace tare::sweep
