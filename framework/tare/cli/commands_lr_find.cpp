// `tare lr-find`: searches for a learning rate.
#include <iostream>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/cli/handlers.h"
#include "tare/cli/ranks.h"
#include "tare/cli/shipped.h"
#include "tare/config/node.h"
#include "tare/recipe/find_rate.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/runtime/init.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

size_t phase_of(const Arguments& arguments, const RecipeOptions& recipe) {
  if (!arguments.has("phase")) return 0;
  const std::string text = arguments.get("phase");
  const bool digits = !text.empty() && text.size() < 10 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoul(text) >= recipe.phases.size())
    throw ConfigError("tare lr-find", "--phase must be a phase of the recipe, 0 to " +
                                          std::to_string(recipe.phases.size() - 1) + ", got '" +
                                          printable(text) + "'");
  return std::stoul(text);
}

}  // namespace

int lr_find_command(const Arguments& arguments) {
  refuse_ranks("tare lr-find");
  const auto& words = arguments.positional();
  const RecipeOptions recipe =
      read_recipe(recipe_path(words.front()), {words.begin() + 1, words.end()});
  const size_t phase = phase_of(arguments, recipe);
  init();
  // Until the process ends, as for a run.
  static const InterruptScope& interrupts = *new InterruptScope;
  const LrFindResult found = find_rate(recipe, phase);
  if (arguments.has("json"))
    std::cout << to_json(found, recipe, phase) << '\n';
  else
    std::cout << recipe.name << ", " << name_of(recipe, phase) << ": "
              << found.str(width_for(std::cout));
  return found.interrupted ? 128 + interrupts.signal() : kSuccess;
}

}  // namespace tare::cli
