// Reads how a run went from its files.
#include "tare/sweep/outcome.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/report/read_run.h"
#include "tare/report/run_failure.h"
#include "tare/runtime/exit_code.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;

/// Returns the metric of an epoch or of a validation inside it.
template <class Row>
std::optional<double> value_of(const Row& row, const std::string& metric) {
  if (metric == "valid_loss") return row.valid_loss;
  if (metric == "train_loss") return row.train_loss;
  const MetricValue* const found = report::find_metric(row.metrics, metric);
  return found ? std::optional(found->value) : std::nullopt;
}

/// Returns the metric by epoch, over all phases.
std::vector<double> values_of(const report::RunFiles& run, const std::string& metric) {
  std::vector<double> values;
  for (const auto& phase : run.phases)
    for (const auto& epoch : phase.epochs)
      if (const auto value = value_of(epoch, metric)) values.push_back(*value);
  return values;
}

/// Returns the highest peak of a phase, of the rank that needs the most.
int64_t peak_of(const report::RunFiles& run) {
  int64_t peak = 0;
  for (const auto& phase : run.phases) {
    if (!phase.figures) continue;
    peak = std::max(peak, phase.figures->peak_bytes);
    for (const auto& rank : phase.figures->ranks) peak = std::max(peak, rank.peak_bytes);
  }
  return peak;
}

/// Returns the signal that an exit code of 128 + N names, as a program that has started others ends
/// with it when N has ended one of them; 0: none, or one for which runs save.
int signal_in(int exit_code) {
  const int signal = exit_code - 128;
  return signal > 0 && signal < 65 && signal != SIGINT && signal != SIGTERM ? signal : 0;
}

/// Returns the restored epoch of the last phase, whose weights the run ends with.
int64_t restored_epoch_of(const report::RunFiles& run) {
  const bool known = !run.phases.empty() && run.phases.back().figures;
  return known ? run.phases.back().figures->restored_epoch : 0;
}

/// Returns the metric of the validation inside an epoch whose weights the run ends with.
std::optional<double> restored_value_of(const report::RunFiles& run, const std::string& metric) {
  if (run.phases.empty() || !run.phases.back().figures) return std::nullopt;
  const PhaseReport& last = *run.phases.back().figures;
  const auto found = std::ranges::find(last.validations, last.restored_step, &ValidationRow::step);
  return found == last.validations.end() ? std::nullopt : value_of(*found, metric);
}

/// Returns the bytes of the phases' tables of epochs.
uintmax_t table_bytes(const fs::path& folder) {
  std::error_code error;
  uintmax_t bytes = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& file = entry->path();
    if (file.extension() == ".csv" && file.stem().extension() != ".steps")
      bytes += entry->file_size(error);
  }
  return bytes;
}

}  // namespace

std::string how_it_ended(const launch::ChildEnd& end) {
  const int signal = end.signal != 0 ? end.signal : signal_in(end.exit_code);
  if (signal != 0) return "signal " + std::to_string(signal);
  if (end.exit_code == kOutOfMemory) return "out of memory";
  return end.exit_code == 0 ? "" : "exit " + std::to_string(end.exit_code);
}

std::string failure_in(const fs::path& folder, size_t limit) {
  try {
    const auto failure = report::read_failure(folder);
    return failure ? printable(failure->reason, limit) : std::string();
  } catch (const Error& error) {
    log::debug(error.what());
    return {};
  }
}

Outcome outcome_of(const fs::path& folder, const launch::ChildEnd& end, const std::string& metric) {
  Outcome outcome{.reason = how_it_ended(end), .exit_code = end.exit_code};
  if (!fs::exists(folder / "report.json")) {
    if (outcome.reason.empty()) outcome.reason = "no report";
    return outcome;
  }
  try {
    const auto run = report::read_run(folder, folder);
    outcome.peak_bytes = peak_of(run);
    if (run.figures) outcome.seconds = run.figures->seconds;
    if (!outcome.reason.empty()) return outcome;
    outcome.values = values_of(run, metric);
    outcome.restored_epoch = restored_epoch_of(run);
    outcome.restored_value = restored_value_of(run, metric);
    if (!run.figures || run.figures->reason != StopReason::finished) {
      outcome.reason = "not finished";
    } else if (outcome.values.empty()) {
      outcome.reason = "no metric '" + printable(metric) + "'";
    } else if (std::isnan(outcome.value())) {
      outcome.reason = printable(metric) + " is NaN";
    } else {
      outcome.state = search::TrialState::complete;
    }
  } catch (const Error& error) {
    if (outcome.reason.empty()) outcome.reason = error.what();  // else killed while it wrote
  }
  return outcome;
}

bool is_on_generated_data(const fs::path& log_dir, const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) {
    const fs::path folder = log_dir / trial.run_name;
    if (trial.state != search::TrialState::complete || !fs::exists(folder / "report.json"))
      continue;
    const auto run = report::read_run(folder, folder);
    return run.figures && run.figures->generated;
  }
  return false;
}

const std::vector<double>& Reports::read(const fs::path& folder, const std::string& metric) {
  const uintmax_t bytes = table_bytes(folder);
  if (bytes == bytes_) return values_;
  try {
    values_ = values_of(report::read_run(folder, folder), metric);
    bytes_ = bytes;
  } catch (const Error&) {  // it has just begun, or a row is half written
  }
  return values_;
}

}  // namespace tare::sweep
