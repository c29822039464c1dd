// Reads the report, recipe and logs of a run's folder.
#include "tare/report/read_run.h"

#include <algorithm>
#include <cerrno>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/config/node.h"
#include "tare/report/markup.h"
#include "tare/report/run_tables.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "report.read_run";
constexpr const char* kRecipeFile = "recipe.yaml";
constexpr const char* kReportFile = "report.json";
constexpr const char* kHistoryFile = "history.csv";  // of the callback csv_log, where it names none
constexpr const char* kStepsFile = "steps.csv";      // likewise of steps_log

PhaseFiles& phase_named(RunFiles& run, const std::string& name) {
  const auto known = std::ranges::find(run.phases, name, &PhaseFiles::name);
  if (known != run.phases.end()) return *known;
  return run.phases.emplace_back(PhaseFiles{.name = name});
}

void read_report(const fs::path& path, RunFiles& run) {
  run.figures = run_from_json(io::read_text(path), path);
  run.name = run.figures->name;
  for (const PhaseReport& phase : run.figures->phases) phase_named(run, phase.name).figures = phase;
}

void read_recipe(const fs::path& path, RunFiles& run) {
  run.recipe = io::read_text(path);
  const auto recipe = config::parse_text(run.recipe, path.string());
  if (const auto* name = recipe.find("name")) run.name = name->text;
  const auto* phases = recipe.find("phases");
  for (size_t i = 0; phases != nullptr && i < phases->items.size(); ++i) {
    const auto* name = phases->items[i].find("name");
    const bool named = name != nullptr && !name->text.empty();
    (void)phase_named(run, named ? name->text : "phase " + std::to_string(i + 1));
  }
}

void read_curves(const fs::path& folder, RunFiles& run) {
  for (auto& phase : run.phases) {
    if (phase.name.find('/') != std::string::npos)
      throw FormatError(kWhere, (folder / "recipe.yaml").string(), "phases", "has a path as name");
    const fs::path epochs = folder / (phase.name + ".csv");
    const fs::path steps = folder / (phase.name + ".steps.csv");
    if (fs::exists(epochs)) phase.epochs = read_epochs(epochs);
    if (fs::exists(steps)) phase.steps = read_steps(steps);
    const fs::path rates = folder / (phase.name + ".lr_find.csv");
    if (fs::exists(rates)) phase.rates = read_rates(rates);
    if (phase.epochs.empty() && !phase.figures)
      run.missing.push_back(capitalized(phase_text(phase.name)) + " has no finished epoch.");
  }
}

}  // namespace

std::vector<std::string> metric_names(const RunFiles& run) {
  std::vector<std::string> names;
  for (const auto& phase : run.phases) {
    if (phase.epochs.empty()) continue;  // a table has one header for all of its rows
    for (const auto& metric : phase.epochs.front().metrics)
      if (std::ranges::find(names, metric.name) == names.end()) names.push_back(metric.name);
  }
  return names;
}

std::vector<std::string> recipe_metrics(const RunFiles& run) {
  std::vector<std::string> names;
  if (run.recipe.empty()) return names;
  const auto recipe = config::parse_text(run.recipe, "recipe.yaml");
  if (const auto* metrics = recipe.find("metrics"))
    for (const auto& metric : metrics->items) names.push_back(metric.text);
  return names;
}

namespace {

/// Reads what the callbacks of a program leave in a folder that `tare run` has not made.
void read_history(const fs::path& folder, RunFiles& run) {
  PhaseFiles phase{.name = "history", .epochs = read_epochs(folder / kHistoryFile)};
  if (fs::exists(folder / kStepsFile)) phase.steps = read_steps(folder / kStepsFile);
  run.phases.push_back(std::move(phase));
  run.missing.emplace_back(
      "recipe.yaml and report.json, which tare run writes, are missing: what a program has written "
      "to history.csv and steps.csv is all that is known.");
}

/// Reads recipe.yaml, report.json and the tables of the phases.
void read_files_of_run(const fs::path& folder, RunFiles& run) {
  const fs::path recipe = folder / kRecipeFile, report = folder / kReportFile;
  if (fs::exists(recipe))
    read_recipe(recipe, run);
  else
    run.missing.emplace_back("recipe.yaml is missing: the settings are not known.");
  run.failure = read_failure(folder);
  if (fs::exists(report))
    read_report(report, run);
  else if (run.failure)
    run.missing.push_back("The run failed " + place_text(*run.failure) +
                          ": its figures and those of its phases are not known.");
  else
    run.missing.emplace_back("The run has not ended: it is under way, or was killed.");
  read_curves(folder, run);
}

}  // namespace

RunFiles read_run(const fs::path& folder, const fs::path& trace) {
  if (!fs::exists(folder)) throw IoError(kWhere, folder.string(), ENOENT);
  const bool of_run = fs::exists(folder / kRecipeFile) || fs::exists(folder / kReportFile);
  if (!of_run && !fs::exists(folder / kHistoryFile)) {
    throw ConfigError(kWhere, "'" + printable(folder.string()) +
                                  "' holds no recipe.yaml, no report.json and no history.csv, "
                                  "which the callback csv_log of a program writes; give the folder "
                                  "of a run, such as runs/NAME");
  }
  // "run/" names what it names without the separator at the end.
  RunFiles run{.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string()};
  if (of_run)
    read_files_of_run(folder, run);
  else
    read_history(folder, run);
  const fs::path worst = folder / kWorstRowsFile;
  if (fs::exists(worst)) run.worst_rows = read_worst_rows(worst);
  const fs::path timeline = trace / "timeline.csv";
  if (fs::exists(timeline) || trace != folder) run.memory = read_timeline(timeline);
  return run;
}

}  // namespace tare::report
