// Sets a phase up for a search for its learning rate.
#include "tare/recipe/find_rate.h"

#include <ATen/Context.h>

#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/learner/learner.h"
#include "tare/recipe/learner_options.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/recipe/resolve.h"

namespace tare {

LrFindResult find_rate(const RecipeOptions& given, size_t phase) {
  if (phase >= given.phases.size())
    throw ConfigError("recipe.lr_find", "phase", "is not one of the recipe",
                      "0 to " + std::to_string(given.phases.size() - 1), std::to_string(phase));
  check_recipe(given);
  check_files(given);
  RecipeData data;
  const ResolvedRecipe resolved = resolve_recipe(given, data);
  const RecipeOptions& recipe = resolved.recipe;
  at::manual_seed(recipe.learner.seed);
  Model model = make_model(recipe, resolved.facts, resolved.phases);
  const OpenData& open = open_data(recipe, phase, data);
  check_data(recipe, phase, open);
  LearnerOptions options = learner_options(recipe, phase, open.facts);
  options.progress = false;
  Learner learner(std::move(model), open.named.splits, std::move(options));
  (void)learner.freeze_to(recipe.phases[phase].freeze_to);
  const LearningRate rate = rate_of(recipe, recipe.phases[phase]);
  return learner.lr_find(rate.search() ? *rate.search() : LrFindOptions{});
}

std::string to_json(const LrFindResult& found, const RecipeOptions& recipe, size_t phase) {
  using nlohmann::ordered_json;
  const auto rate = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  ordered_json points = ordered_json::array();
  for (const LrFindPoint& point : found.points)
    points.push_back({{"lr", point.lr}, {"loss", point.loss}, {"smoothed", point.smoothed}});
  return ordered_json{{"name", recipe.name},
                      {"phase", name_of(recipe, phase)},
                      {"lr", found.valley ? ordered_json(found.lr()) : ordered_json()},
                      {"suggestion", found.suggestion},
                      {"valley", rate(found.valley)},
                      {"steepest", rate(found.steepest)},
                      {"minimum", rate(found.minimum)},
                      {"stopped_early", found.stopped_early},
                      {"seconds", found.seconds},
                      {"points", points}}
      .dump(2);
}

}  // namespace tare
