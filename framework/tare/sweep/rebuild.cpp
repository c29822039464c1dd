// Makes a store again from what runs have left.
#include "tare/sweep/rebuild.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/scalar.h"
#include "tare/search/grid.h"
#include "tare/search/value_text.h"
#include "tare/sweep/folder.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/run_mark.h"
#include "tare/sweep/run_name.h"
#include "tare/sweep/run_record.h"
#include "tare/sweep/run_rows.h"
#include "tare/sweep/tuner.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;
using config::Node;
using std::chrono::system_clock;

using Row = std::map<std::string, std::string>;  // fields by column
using OutcomeOf = std::function<Outcome(const fs::path&, const launch::ChildEnd&)>;

/// Returns a field that a run_data.csv has, or "".
std::string field(const Row& row, const std::string& column) {
  const auto found = row.find(column);
  return found == row.end() ? "" : found->second;
}

/// Returns the rows of run_data.csv by the names of the runs.
std::map<std::string, Row> rows_of(const fs::path& log_dir) {
  std::map<std::string, Row> rows;
  for (const RunRow& row : run_rows(log_dir))
    for (const auto& [column, written] : row.fields)
      rows[row.run][text_of_field(column)] = text_of_field(written);
  return rows;
}

/// Returns the value of a text that Python has written.
Node value_of(const search::Parameter* parameter, const std::string& text) {
  if (parameter)
    for (const Node& value : parameter->values)
      if (csv_field(search::python_text(value)) == csv_field(text)) return value;
  if (text.empty() || text == "None") return {};
  if (text == "True" || text == "False") return Node::scalar(text == "True" ? "true" : "false");
  return config::as_number(text) ? Node::scalar(text) : Node::string(text);
}

search::Cell cell_of(const SweepOptions& sweep, const Row& row) {
  search::Cell cell;
  for (const auto& parameter : sweep.parameters.parameters) {
    const auto found = row.find(parameter.name);
    if (found == row.end()) continue;
    Node value = value_of(&parameter, found->second);
    if (value.kind != config::Kind::null)
      cell.values.emplace_back(parameter.name, std::move(value));
  }
  return cell;
}

/// Reads from run_data.json when a run began and ended.
void read_times(const fs::path& folder, Trial& trial, Outcome& outcome) {
  const auto data = read_run_data(folder);
  const auto read = [&data](const char* name, system_clock::time_point& value) {
    const auto since_1970 = data ? data->find(name) : std::nullopt;
    if (!since_1970 || !std::isfinite(*since_1970)) return;
    const std::chrono::duration<double> seconds(*since_1970);
    value = system_clock::time_point(std::chrono::duration_cast<system_clock::duration>(seconds));
  };
  read("start_time", trial.started);
  read("end_time", outcome.ended);
}

/// Returns the number in the first of the columns that has one.
std::optional<double> number_in_row(const Row& row, const std::vector<std::string>& columns) {
  for (const std::string& column : columns)
    if (const auto value = config::as_number(field(row, column)); value && std::isfinite(*value))
      return value;
  return std::nullopt;
}

/// Returns the outcome in a row with the last values of a run, where the run has left no report.
std::optional<Outcome> outcome_of_row(const SweepOptions& sweep, const Row& row) {
  const std::string& metric = sweep.metric.name;
  const std::string loss = metric == "valid_loss" ? "val_loss" : metric;
  const auto value = number_in_row(row, {"run_" + loss, "run_val_" + metric, "run_" + metric});
  if (!value) return std::nullopt;
  const double peak = number_in_row(row, {"run_peak_bytes"}).value_or(0);
  return Outcome{.state = search::TrialState::complete,
                 .values = {*value},
                 .peak_bytes = static_cast<int64_t>(std::clamp(peak, 0.0, 1e18)),
                 .seconds = number_in_row(row, {"run_total_time", "run_seconds"}).value_or(0)};
}

/// Returns the outcome of a run of which only the row is left, whose state a sweep has written.
std::optional<Outcome> outcome_of_row_alone(const SweepOptions& sweep, const Row& row) {
  const std::string state = field(row, "state");
  if (state == to_string(search::TrialState::failed))
    return Outcome{.reason = "has failed, by its row in run_data.csv",
                   .seconds = number_in_row(row, {"run_seconds"}).value_or(0)};
  auto outcome = outcome_of_row(sweep, row);
  if (outcome && state == to_string(search::TrialState::pruned))
    outcome->state = search::TrialState::pruned;
  return outcome;
}

struct Found {
  Trial trial{};
  std::optional<Outcome> outcome{};  // unset: the run waits
  std::vector<double> values{};      // of the metric, by epoch
};

class Rebuild {
 public:
  Rebuild(const SweepOptions& sweep, OutcomeOf outcome)
      : sweep_(sweep),
        outcome_(std::move(outcome)),
        identity_(sweep),
        rows_(rows_of(sweep.log_dir)) {
    if (!outcome_)
      outcome_ = [this](const fs::path& folder, const launch::ChildEnd& end) {
        return sweep::outcome_of(folder, end, sweep_.metric.name);
      };
    for (const fs::path& folder : run_folders(sweep_.log_dir, sweep_.name)) take_folder(folder);
    for (const auto& [name, row] : rows_) take_row(name, row);
  }

  [[nodiscard]] const std::map<int64_t, Found>& found() const { return found_; }
  [[nodiscard]] int64_t unknown() const { return unknown_; }

 private:
  void take_folder(const fs::path& folder) {
    const std::string name = folder.filename().string();
    const auto row = rows_.find(name);
    Trial trial{.number = *number_in(name, sweep_.name), .run_name = name};
    const auto mark = read_mark(folder);
    if (mark && mark->study == sweep_.name) {
      trial.number = mark->number;
      trial.attempt = mark->attempt;
      trial.identity = mark->identity;
      trial.cell = mark->cell();
    } else if (row != rows_.end()) {
      trial.cell = cell_of(sweep_, row->second);
      trial.identity = identity_.of(trial.cell);
    }
    if (trial.identity.empty() || trial.number >= static_cast<int64_t>(search::kMaxCells)) {
      log::warning("[sweep.rebuild] nothing says what has run in " + folder.string());
      ++unknown_;
      return;
    }
    auto outcome = how_it_ended(folder, row == rows_.end() ? Row() : row->second);
    if (outcome) read_times(folder, trial, *outcome);
    auto values = outcome && !outcome->values.empty() ? outcome->values
                                                      : Reports().read(folder, sweep_.metric.name);
    found_[trial.number] = {std::move(trial), std::move(outcome), std::move(values)};
  }

  /// Adds a run of which only the row is left.
  void take_row(const std::string& name, const Row& row) {
    const auto number = number_in(name, sweep_.name);
    if (!number || found_.contains(*number) || fs::exists(sweep_.log_dir / name)) return;
    auto outcome = outcome_of_row_alone(sweep_, row);
    if (!outcome || *number >= static_cast<int64_t>(search::kMaxCells)) return;
    Trial trial{.number = *number, .run_name = name, .cell = cell_of(sweep_, row)};
    trial.identity = identity_.of(trial.cell);
    auto values = outcome->values;
    found_[*number] = {std::move(trial), std::move(outcome), std::move(values)};
  }

  [[nodiscard]] std::optional<Outcome> how_it_ended(const fs::path& folder, const Row& row) const {
    Outcome outcome = outcome_(folder, {});
    const std::string state = field(row, "state");
    if (outcome.state == search::TrialState::complete) return outcome;
    if (state == to_string(search::TrialState::pruned)) {
      outcome.state = search::TrialState::pruned;
      outcome.reason.clear();
      outcome.values = Reports().read(folder, sweep_.metric.name);
      return outcome;
    }
    if (state == to_string(search::TrialState::failed)) return outcome;
    return outcome_of_row(sweep_, row);
  }

  const SweepOptions& sweep_;
  OutcomeOf outcome_;
  Identity identity_;
  std::map<std::string, Row> rows_;
  std::map<int64_t, Found> found_;  // by number
  int64_t unknown_ = 0;
};

/// Returns the sweep with the values of all runs among its choices, as Optuna wants them.
SweepOptions with_values_of(SweepOptions sweep, const std::map<int64_t, Found>& found) {
  for (const auto& [number, run] : found)
    for (const auto& [key, value] : run.trial.cell.values)
      for (search::Parameter& parameter : sweep.parameters.parameters)
        if (parameter.name == key && !parameter.range) parameter.values.push_back(value);
  return sweep;
}

/// Adds a run with all that it has reported, so that samplers and pruners see it as they did.
/// Returns its state.
search::TrialState put_back(const Found& run, Store& store, Tuner& tuner) {
  store.restore(run.trial, run.outcome);
  Trial trial = store.trials().back();  // in order of number
  const search::TrialState state = std::exchange(trial.state, search::TrialState::running);
  tuner.add(trial);
  (void)tuner.report(trial, run.values);
  trial.state = state;
  tuner.add(trial);
  return state;
}

void count(search::TrialState state, RebuildReport& report) {
  if (state == search::TrialState::complete) ++report.complete;
  if (state == search::TrialState::pruned) ++report.pruned;
  if (state == search::TrialState::failed) ++report.failed;
  if (state == search::TrialState::waiting) ++report.waiting;
}

}  // namespace

RebuildReport rebuild_store(const SweepOptions& sweep, const OutcomeOf& outcome) {
  const auto lock = lock_folder(sweep);
  const fs::path file = sweep.log_dir / (sweep.name + ".sqlite");
  if (fs::exists(file))
    throw StateError("sweep.rebuild '" + printable(file.string()) + "'", "the store already exists",
                     "delete it first if it is damaged");
  const Rebuild runs(sweep, outcome);
  if (runs.found().empty())
    throw ConfigError("sweep.rebuild", "there are no runs of '" + printable(sweep.name) + "' in '" +
                                           printable(sweep.log_dir.string()) +
                                           "', neither folders nor rows of run_data.csv: "
                                           "tare sweep run starts them, once files of others under "
                                           "these names are moved away");
  RebuildReport report{.unknown = runs.unknown()};
  const SweepOptions all = with_values_of(sweep, runs.found());
  Store store(file, all);
  Tuner tuner(all, store);
  int64_t next = 0;
  for (const auto& [number, run] : runs.found()) {
    // Optuna counts rows to number them, so there are no gaps.
    for (; next < number; ++next) store.restore({.number = next}, Outcome{.reason = kDropped});
    ++next;
    count(put_back(run, store, tuner), report);
  }
  return report;
}

}  // namespace tare::sweep
