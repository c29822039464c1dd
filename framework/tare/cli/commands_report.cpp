// `tare report` and `tare compare`: writes the HTML page of a run, and shows runs side by side.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/cli/handlers.h"
#include "tare/cli/output.h"
#include "tare/config/registry.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"
#include "tare/recipe/recipe.h"
#include "tare/report/comparison.h"
#include "tare/report/run_data.h"
#include "tare/report/run_report.h"

namespace tare::cli {

namespace {

namespace fs = std::filesystem;

/// Writes the tables of a run, and prints their paths. A folder of a run has files of these names.
void write_tables(const fs::path& run, const fs::path& folder, const std::string& recording) {
  if (fs::exists(folder / "recipe.yaml") || fs::exists(folder / "report.json"))
    throw ConfigError("tare report", "--csv would write into '" + printable(folder.string()) +
                                         "', which is the folder of a run: give another folder");
  const auto tables = report::run_tables(run, recording);
  io::make_directories(folder);
  for (const auto& table : tables) {
    io::write_atomically(folder / table.name, table.text);
    std::cout << (folder / table.name).string() << '\n';
  }
}

/// Returns a recipe with all defaults, whose only phase has data and a duration of its own.
std::string default_recipe() {
  RecipeOptions recipe;
  PhaseOptions& phase = recipe.phases.emplace_back();
  phase.data.emplace();
  phase.duration.emplace();
  return config::to_yaml(config::to_node(recipe));
}

/// Returns the options that only this kind has, at their defaults.
config::Node own_defaults(const std::string& choice, const std::string& kind) {
  const auto infos = choice == "optimizer" ? optimizers::registry().infos()
                     : choice == "model"   ? models::registry().infos()
                                           : schedules::registry().infos();
  const auto found = std::ranges::find(infos, kind, &config::EntryInfo::name);
  return found == infos.end() ? config::Node::map() : found->defaults;
}

}  // namespace

int report_command(const Arguments& arguments) {
  const fs::path folder = arguments.positional().front();
  const std::string recording = arguments.get("recording");
  const bool json = arguments.has("json"), csv = arguments.has("csv");
  if (json && csv)
    throw ConfigError("tare report", "--json and --csv contradict each other; give one of them");
  const fs::path file = arguments.get("out", (folder / "report.html").string());
  const bool with_page = arguments.has("out") || (!json && !csv);
  const bool is_own =
      !arguments.has("out") && !fs::exists(folder);  // the reader says what is wrong
  if (with_page && !is_own) check_output_file(file, FileKind::html, "--out");
  if (json) std::cout << report::run_json(folder, recording) << '\n';
  if (csv) write_tables(folder, arguments.get("csv"), recording);
  if (!with_page) return kSuccess;
  const std::string page = report::html_report(folder, recording);
  io::write_atomically(file, page);
  if (!json)
    std::cout << file.string() << ", " << format_bytes(static_cast<int64_t>(page.size())) << '\n';
  return kSuccess;
}

int compare_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const fs::path file = arguments.get("out");
  const bool json = arguments.has("json"), csv = arguments.has("csv");
  if (json && csv)
    throw ConfigError("tare compare", "--json and --csv contradict each other; give one of them");
  if (!file.empty()) check_output_file(file, FileKind::html, "--out");
  const auto comparison =
      report::compare_runs({words.begin(), words.end()}, default_recipe(), own_defaults);
  std::cout << (json  ? to_json(comparison) + '\n'
                : csv ? to_csv(comparison)
                      : to_text(comparison, width_for(std::cout)));
  if (!file.empty()) {
    io::write_atomically(file, to_html(comparison));
    if (!json && !csv) std::cout << '\n' << file.string() << '\n';
  }
  return kSuccess;
}

}  // namespace tare::cli
