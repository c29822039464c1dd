// Reads what a sweep has done, and prints it.
#include "tare/cli/sweep_status.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/table.h"
#include "tare/base/terminal.h"
#include "tare/config/scalar.h"
#include "tare/launch/process.h"
#include "tare/sweep/folder.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/run_name.h"
#include "tare/sweep/wanted_runs.h"

namespace tare::cli {
namespace {

using search::TrialState;
using sweep::SweepOptions;

/// Removes the earlier attempts of runs that have been tried again.
void keep_last_attempts(std::vector<sweep::Trial>& trials) {
  std::map<std::string, int64_t> last;  // number by run; what was dropped is no attempt
  for (const auto& trial : trials)
    if (trial.reason != sweep::kDropped) last[trial.run_name] = trial.number;
  std::erase_if(trials, [&](const auto& trial) {
    return trial.reason != sweep::kDropped && last[trial.run_name] != trial.number;
  });
}

/// Marks the runs that have begun and wait until the sweep continues, where its coordinator has
/// ended. A killed one has left them as running: its processes of this machine have ended with it.
/// Jobs of a cluster continue.
void mark_stopped(const SweepOptions& sweep, std::vector<sweep::Trial>& trials) {
  const std::string how = std::string("; ") +
                          (sweep.origin.is_program ? "its program" : "tare sweep run") +
                          " continues it";
  for (auto& trial : trials) {
    if (trial.state == TrialState::running && trial.child.executor().empty()) {
      trial.state = TrialState::waiting;
      trial.reason = "stopped, because its sweep was killed" + how;
    } else if (trial.state == TrialState::waiting && trial.reason.empty() &&
               std::filesystem::is_directory(sweep.log_dir / trial.run_name)) {
      trial.reason = "stopped" + how;
    }
  }
}

constexpr size_t kShownError = 300;  // bytes

/// Returns the last line that a failed run has written to its error file; empty: there is none.
std::string last_error(const SweepOptions& sweep, const sweep::Trial& trial) {
  constexpr size_t kRead = 4096;
  const auto file =
      sweep.log_dir / trial.run_name / (sweep::log_stem(sweep, trial.run_name) + ".err");
  std::error_code ignored;  // a run that could not start has written none
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  const io::Mapping whole(file);
  const auto end = whole.bytes().last(std::min(whole.bytes().size(), kRead));
  std::string text(reinterpret_cast<const char*>(end.data()), end.size());
  while (text.ends_with('\n')) text.pop_back();
  return printable(text.substr(text.rfind('\n') + 1), kShownError);
}

/// Returns why a run has failed, or is not compared with others.
std::string reason_of(const SweepOptions& sweep, const sweep::Trial& trial) {
  if (trial.is_earlier) return "of another recipe or other settings";
  std::string text = printable(trial.reason);
  if (trial.state != TrialState::failed) return text;
  std::string error = sweep::failure_in(sweep.log_dir / trial.run_name, kShownError);
  if (error.empty()) error = last_error(sweep, trial);
  return error.empty() ? text : text + ": " + error;
}

/// Returns the peak of a run, which the row that is left of a run may not say.
std::string peak_text(const sweep::Trial& trial) {
  return trial.peak_bytes > 0 ? format_bytes(trial.peak_bytes) : "unknown";
}

/// Prints a line for each run, for programs that read it.
void print_lines(const SweepOptions& sweep, const std::vector<sweep::Trial>& trials) {
  for (const auto& trial : trials) {
    std::cout << trial.run_name << "  " << to_string(trial.state);
    if (!std::isnan(trial.value))
      std::cout << "  " << sweep.metric.name << ' ' << trial.value << ", peak " << peak_text(trial)
                << ", " << format_seconds(trial.seconds);
    if (trial.ranks > 1) std::cout << "  " << printable(trial.placed());
    const std::string why = reason_of(sweep, trial);
    if (!why.empty()) std::cout << "  " << why;
    std::cout << '\n';
  }
}

void print_table(const SweepOptions& sweep, const std::vector<sweep::Trial>& trials, size_t width) {
  std::vector<TableColumn> columns{{.head = "run", .whole = true},
                                   {.head = "state"},
                                   {.head = printable(sweep.metric.name), .figure = true},
                                   {.head = "peak", .figure = true},
                                   {.head = "time", .figure = true}};
  const bool has_ranks = std::ranges::any_of(trials, [](const auto& t) { return t.ranks > 1; });
  if (has_ranks) columns.push_back({.head = "placed", .whole = true});
  const auto has_reason = [&](const auto& trial) { return !reason_of(sweep, trial).empty(); };
  if (std::ranges::any_of(trials, has_reason)) columns.push_back({.head = "reason", .whole = true});
  std::vector<TableRow> rows;
  for (const auto& trial : trials) {
    const bool ended = !std::isnan(trial.value);
    rows.push_back({trial.run_name, to_string(trial.state),
                    ended ? config::number_text(trial.value) : "-", ended ? peak_text(trial) : "-",
                    ended ? format_seconds(trial.seconds) : "-"});
    if (has_ranks) rows.back().push_back(printable(trial.placed()));
    if (rows.back().size() < columns.size()) rows.back().push_back(reason_of(sweep, trial));
  }
  std::cout << text_table(columns, rows, width);
}

}  // namespace

sweep::StoreContents contents_of(const SweepOptions& sweep) {
  const auto file = std::filesystem::exists(sweep.log_dir)
                        ? sweep::checked_store_file(sweep)
                        : sweep.log_dir / (sweep.name + ".sqlite");
  if (!std::filesystem::exists(file))
    throw ConfigError("tare sweep", "nothing of '" + sweep.name + "' has run: " + file.string() +
                                        " is not there; tare sweep run starts it");
  auto contents = sweep::read_store(file, sweep.name);
  keep_last_attempts(contents.trials);
  if (!launch::is_alive(contents.coordinator)) mark_stopped(sweep, contents.trials);
  sweep::mark_earlier(sweep, contents.trials);
  if (contents.trials.empty() ||
      !std::ranges::all_of(contents.trials, [](const auto& trial) { return trial.is_earlier; }))
    return contents;
  log::warning("no run of '" + sweep.name +
               "' has these settings: the recipe has changed, or words key=value of `tare sweep "
               "run` are missing here; the runs are compared with each other");
  for (auto& trial : contents.trials) trial.is_earlier = false;
  return contents;
}

std::string best_text(const SweepOptions& sweep, const std::vector<sweep::Trial>& trials) {
  const bool most = sweep.metric.goal == "maximize";
  const sweep::Trial* best = nullptr;
  for (const auto& trial : trials) {
    if (trial.state != TrialState::complete || trial.is_earlier || std::isnan(trial.value))
      continue;
    if (!best || (most ? trial.value > best->value : trial.value < best->value)) best = &trial;
  }
  if (!best) return {};
  std::ostringstream text;
  text << "best " << best->run_name << ": " << sweep.metric.name << ' ' << best->value;
  for (const auto& setting : sweep::override_texts(sweep, best->cell)) text << "  " << setting;
  const std::string folder = (sweep.log_dir / best->run_name).string();
  const bool fits = folder.size() + 3 < width_for(std::cout);  // a path cannot be broken
  if (fits) text << "  in " << folder;
  return fitted(text.str(), std::cout) + '\n';
}

namespace {

struct Mean {
  std::string settings{};
  std::vector<double> values{};

  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  /// Returns the standard deviation of a sample.
  [[nodiscard]] double deviation() const {
    const double middle = mean();
    double sum = 0;
    for (const double value : values) sum += (value - middle) * (value - middle);
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
};

/// Returns the values of the complete runs by their settings without the fold.
std::vector<Mean> folds_of(const SweepOptions& sweep, const std::vector<sweep::Trial>& trials) {
  std::map<std::string, Mean> by_settings;
  for (const auto& trial : trials) {
    if (trial.state != TrialState::complete || trial.is_earlier || std::isnan(trial.value))
      continue;
    std::string settings;
    bool is_fold = false;
    for (const auto& text : sweep::override_texts(sweep, trial.cell)) {
      const bool of_fold = text.starts_with("data.fold=");
      is_fold |= of_fold;
      if (!of_fold) settings += "  " + text;
    }
    if (!is_fold) continue;
    Mean& mean = by_settings[settings];
    mean.settings = settings;
    mean.values.push_back(trial.value);
  }
  std::vector<Mean> all;
  for (auto& [settings, mean] : by_settings)
    if (mean.values.size() > 1) all.push_back(std::move(mean));
  return all;
}

}  // namespace

std::string fold_text(const SweepOptions& sweep, const std::vector<sweep::Trial>& trials) {
  std::vector<Mean> all = folds_of(sweep, trials);
  std::ranges::stable_sort(all, {}, [&](const Mean& mean) {
    return sweep.metric.goal == "maximize" ? -mean.mean() : mean.mean();
  });
  std::string text;
  for (const Mean& mean : all) {
    std::ostringstream line;
    line << "mean " << sweep.metric.name << ' ' << mean.mean() << " over " << mean.values.size()
         << " folds, standard deviation " << mean.deviation() << mean.settings;
    text += fitted(line.str(), std::cout) + '\n';
  }
  return text;
}

std::string generated_text(const SweepOptions& sweep, const std::vector<sweep::Trial>& trials) {
  return sweep::is_on_generated_data(sweep.log_dir, trials) ? ", on generated data" : "";
}

void print_status(const SweepOptions& sweep) {
  auto contents = contents_of(sweep);
  std::cout << sweep.name
            << (launch::is_alive(contents.coordinator) ? ": is running" : ": is not running")
            << generated_text(sweep, contents.trials) << '\n'
            << best_text(sweep, contents.trials) << fold_text(sweep, contents.trials);
  std::erase_if(contents.trials, [](const auto& trial) { return trial.reason == sweep::kDropped; });
  const size_t width = width_for(std::cout);
  if (width == kAnyWidth)
    print_lines(sweep, contents.trials);
  else if (!contents.trials.empty())
    print_table(sweep, contents.trials, width);
}

}  // namespace tare::cli
