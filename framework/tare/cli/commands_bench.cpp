// `tare bench`: measures a step, and what the machine could do at most.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/bench/bench.h"
#include "tare/cli/handlers.h"
#include "tare/cli/ranks.h"
#include "tare/cli/shipped.h"
#include "tare/model/registry.h"
#include "tare/recipe/read_recipe.h"
#include "tare/runtime/init.h"

namespace tare::cli {
namespace {

bool is_model(const std::string& word) {
  const std::vector<std::string> models = models::names();
  return std::ranges::find(models, word) != models.end() && !std::filesystem::exists(word);
}

}  // namespace

int bench_command(const Arguments& arguments) {
  refuse_ranks("tare bench");
  const auto& words = arguments.positional();
  const std::vector<std::string> overrides(words.begin() + 1, words.end());
  bench::BenchOptions options;
  options.steps = arguments.number("steps", options.steps, 1, 1'000'000);
  if (arguments.has("disk")) options.folder = arguments.get("disk");
  if (!options.folder.empty() && !std::filesystem::is_directory(options.folder))
    throw ConfigError("tare bench",
                      "--disk must be a folder, got '" + printable(options.folder.string()) + "'");
  std::optional<RecipeOptions> recipe;
  if (is_model(words.front())) {
    if (arguments.has("phase"))
      throw ConfigError("tare bench",
                        "--phase is for recipes, and '" + words.front() + "' is a model");
  } else {
    recipe = read_recipe(recipe_path(words.front()), overrides);
    options.phase = static_cast<size_t>(
        arguments.number("phase", 0, 0, static_cast<int64_t>(recipe->phases.size()) - 1));
  }
  init();
  const bench::BenchResult result = recipe ? bench::bench_recipe(*recipe, options)
                                           : bench::bench_model(words.front(), overrides, options);
  std::cout << (arguments.has("json") ? to_json(result) + '\n'
                                      : to_text(result, width_for(std::cout)));
  return kSuccess;
}

}  // namespace tare::cli
