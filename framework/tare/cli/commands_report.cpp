// `tare report` and `tare compare`: writes the HTML page of a run, and shows runs side by side.
#include <filesystem>
#include <iostream>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/io.h"
#include "tare/cli/command.h"
#include "tare/cli/output.h"
#include "tare/recipe/recipe.h"
#include "tare/report/comparison.h"
#include "tare/report/run_report.h"

namespace tare::cli {

namespace {

/// Returns a recipe with all defaults, whose only phase has data of its own.
std::string default_recipe() {
  RecipeOptions recipe;
  recipe.phases.emplace_back().data.emplace();
  return config::to_yaml(config::to_node(recipe));
}

}  // namespace

int report_command(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.positional().front();
  const std::filesystem::path file = arguments.get("out", (folder / "report.html").string());
  refuse_to_replace(file, FileKind::html, "--out");
  const std::string page = report::html_report(folder, arguments.get("recording"));
  io::write_atomically(file, page);
  std::cout << file.string() << ", " << format_bytes(static_cast<int64_t>(page.size())) << '\n';
  return kSuccess;
}

int compare_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const std::filesystem::path file = arguments.get("out");
  if (!file.empty()) refuse_to_replace(file, FileKind::html, "--out");
  const auto comparison = report::compare_runs({words.begin(), words.end()}, default_recipe());
  if (arguments.has("json"))
    std::cout << to_json(comparison) << '\n';
  else
    std::cout << to_text(comparison, width_for(std::cout));
  if (!file.empty()) {
    io::write_atomically(file, to_html(comparison));
    if (!arguments.has("json")) std::cout << '\n' << file.string() << '\n';
  }
  return kSuccess;
}

}  // namespace tare::cli
